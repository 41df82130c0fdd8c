"""The real-time part of a Backendless app on python-socketio, for the adapter to connect to.

Usage: service.py 3|4    the version of Engine.IO. Prints its port. Version 4 offers WebSockets, version 3 polls only.

Messages are published by POST /APPID/KEY/messaging/CHANNEL, after `delay` seconds of silence where the body says so.
There are no tables.
"""
import json
import sys
import threading
import urllib.parse
import uuid

import socketio

VERSION = int(sys.argv[1])
SPACE = "/APPID"


class App:
    """Subscriptions, and what is to be told to whom."""

    def __init__(self):
        self.subscriptions = {}

    def connect(self, query):
        return urllib.parse.parse_qs(query).get("apiKey") == ["KEY"]

    def sub_on(self, sid, data):
        name, options = data["name"], data.get("options", {})
        self.subscriptions[(sid, data["id"])] = (name, options.get("channel"))
        joined = name.endswith("_CONNECT")
        told = [("SUB_RES", {"id": data["id"], "data": "connected"})] if joined else [("SUB_READY", {"id": data["id"]})]
        return [(sid, event, value) for event, value in told]

    def met_req(self, sid, data):
        options = data.get("options", {})
        command = {"type": options.get("type"), "connectionId": sid, "userId": None, "data": options.get("data")}
        told = self.told("PUB_SUB_COMMANDS", options.get("channel"), command)
        return [(sid, "MET_RES", {"id": data["id"], "result": None})] + told

    def publish(self, channel, body):
        message = {
            "messageId": f"message:{uuid.uuid4()}".upper(), "message": body["message"], "timestamp": 1796022761957,
            "publisherId": body.get("publisherId"), "headers": body.get("headers", {}), "subtopic": None}
        answer = {"errorMessage": None, "messageId": message["messageId"], "status": "scheduled"}
        return answer, self.told("PUB_SUB_MESSAGES", channel, message)

    def told(self, name, channel, data):
        return [
            (sid, "SUB_RES", {"id": id, "data": data})
            for (sid, id), subscription in list(self.subscriptions.items()) if subscription == (name, channel)]

    def gone(self, sid):
        self.subscriptions = {key: value for key, value in self.subscriptions.items() if key[0] != sid}


def serve_four():
    import asyncio

    from aiohttp import web

    server = socketio.AsyncServer(async_mode="aiohttp", ping_interval=1, ping_timeout=20)
    web_app = web.Application()
    app = App()

    async def tell(told):
        for sid, event, value in told:
            await server.emit(event, value, to=sid, namespace=SPACE)

    @server.on("connect", namespace=SPACE)
    async def connect(sid, environ, auth=None):
        if not app.connect(environ["QUERY_STRING"]):
            raise socketio.exceptions.ConnectionRefusedError("Invalid api key")

    @server.on("disconnect", namespace=SPACE)
    async def disconnect(sid, reason=None):
        app.gone(sid)

    @server.on("SUB_ON", namespace=SPACE)
    async def sub_on(sid, data):
        await tell(app.sub_on(sid, data))

    @server.on("MET_REQ", namespace=SPACE)
    async def met_req(sid, data):
        await tell(app.met_req(sid, data))

    async def info(request):
        return web.json_response({"rtURL": f"http://{request.host}"})

    async def publish(request):
        body = await request.json()
        answer, told = app.publish(request.match_info["channel"], body)
        loop = asyncio.get_running_loop()
        loop.call_later(body.get("delay", 0), lambda: loop.create_task(tell(told)))
        return web.json_response(answer)

    web_app.router.add_get("/APPID/{key}/info", info)
    web_app.router.add_post("/APPID/{key}/messaging/{channel}", publish)
    server.attach(web_app, socketio_path="APPID")

    async def main():
        runner = web.AppRunner(web_app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(site._server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def serve_three():
    import socketserver
    from wsgiref import simple_server

    server = socketio.Server(async_mode="threading", ping_interval=1, ping_timeout=20)
    app = App()

    def tell(told):
        for sid, event, value in told:
            server.emit(event, value, room=sid, namespace=SPACE)

    @server.on("connect", namespace=SPACE)
    def connect(sid, environ):
        if not app.connect(environ["QUERY_STRING"]):
            raise socketio.exceptions.ConnectionRefusedError("Invalid api key")

    @server.on("disconnect", namespace=SPACE)
    def disconnect(sid):
        app.gone(sid)

    @server.on("SUB_ON", namespace=SPACE)
    def sub_on(sid, data):
        tell(app.sub_on(sid, data))

    @server.on("MET_REQ", namespace=SPACE)
    def met_req(sid, data):
        tell(app.met_req(sid, data))

    engine = socketio.WSGIApp(server, socketio_path="APPID")

    def answer(start, value, status="200 OK"):
        start(status, [("Content-Type", "application/json")])
        return [json.dumps(value).encode()]

    def route(environ, start):
        path = environ["PATH_INFO"].strip("/").split("/")
        # By the query first: the library takes every path below its own.
        if "EIO=" in environ["QUERY_STRING"]:
            return engine(environ, start)
        if path[2:] == ["info"]:
            return answer(start, {"rtURL": f"http://{environ['HTTP_HOST']}"})
        if path[2:3] == ["messaging"]:
            body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            result, told = app.publish(path[3], body)
            threading.Timer(body.get("delay", 0), tell, [told]).start()
            return answer(start, result)
        return answer(start, {"code": 404, "message": "nothing here"}, "404 Not Found")

    class Threads(socketserver.ThreadingMixIn, simple_server.WSGIServer):
        daemon_threads = True

    class Quiet(simple_server.WSGIRequestHandler):
        def log_message(self, *_):
            pass

    http = simple_server.make_server("127.0.0.1", 0, route, Threads, Quiet)
    print(http.server_port, flush=True)
    http.serve_forever()


if __name__ == "__main__":
    serve_four() if VERSION == 4 else serve_three()
