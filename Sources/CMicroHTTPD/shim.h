#pragma once
// MHD_start_daemon, MHD_get_daemon_info and MHD_upgrade_action are variadic, which Swift cannot call.
#include <microhttpd.h>
