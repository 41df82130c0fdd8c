"""The four ends of a bridge, each as its own users have it: what somebody may do there, and what is to be seen there."""
from backendless_corner import BackendlessCorner
from local_corner import LocalCorner
from pusher_corner import PusherCorner
from twilio_corner import TwilioCorner

NAMES = ["local", "pusher", "twilio", "backendless"]


def corners(four):
    kinds = [LocalCorner, PusherCorner, TwilioCorner, BackendlessCorner]
    return dict(zip(NAMES, (kind(four) for kind in kinds)))
