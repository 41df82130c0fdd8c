#pragma once
// MHD_start_daemon, MHD_get_daemon_info and their like are variadic, which Swift cannot call.
#include <microhttpd.h>
#include <string.h>

// Leaves paths and queries as they were sent.
static inline size_t cmhd_keep_escapes(void *context, struct MHD_Connection *connection, char *text) {
  (void)context;
  (void)connection;
  return strlen(text);
}

typedef void *(*cmhd_target_callback)(void *context, const char *target, struct MHD_Connection *connection);

struct cmhd_settings {
  int listener;            // bound, listening, not blocking; closed by the daemon
  unsigned int connections;
  size_t memory;           // bytes a connection: its headers must fit
  unsigned int timeout;    // seconds without any traffic
  const char *certificate; // PEM, or NULL for no TLS
  const char *key;
  void *context;           // given to every callback
  MHD_AcceptPolicyCallback accept;
  MHD_AccessHandlerCallback handle;
  MHD_RequestCompletedCallback completed;
  MHD_NotifyConnectionCallback connection;
  cmhd_target_callback target;
};

// A daemon without a thread, driven through its epoll descriptor.
static inline struct MHD_Daemon *cmhd_start(const struct cmhd_settings *s) {
  unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_UPGRADE | MHD_ALLOW_SUSPEND_RESUME;
  struct MHD_OptionItem tls[] = {
    {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)s->certificate},
    {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)s->key},
    {MHD_OPTION_END, 0, NULL},
  };
  struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
  return MHD_start_daemon(
    s->certificate ? flags | MHD_USE_TLS : flags, 0, s->accept, s->context, s->handle, s->context,
    MHD_OPTION_LISTEN_SOCKET, s->listener,
    MHD_OPTION_CONNECTION_LIMIT, s->connections,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->memory,
    MHD_OPTION_CONNECTION_TIMEOUT, s->timeout,
    MHD_OPTION_STRICT_FOR_CLIENT, 1,
    MHD_OPTION_NOTIFY_COMPLETED, s->completed, s->context,
    MHD_OPTION_NOTIFY_CONNECTION, s->connection, s->context,
    MHD_OPTION_URI_LOG_CALLBACK, s->target, s->context,
    MHD_OPTION_UNESCAPE_CALLBACK, &cmhd_keep_escapes, NULL,
    MHD_OPTION_ARRAY, s->certificate ? tls : none,
    MHD_OPTION_END);
}

static inline int cmhd_epoll_descriptor(struct MHD_Daemon *d) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

static inline int cmhd_descriptor(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

static inline const struct sockaddr *cmhd_address(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}

static inline void *cmhd_connection_context(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info ? info->socket_context : NULL;
}

static inline void cmhd_end_upgrade(struct MHD_UpgradeResponseHandle *u) {
  MHD_upgrade_action(u, MHD_UPGRADE_ACTION_CLOSE);
}

// MHD marks its enumerations as closed, so that Swift sees them under names that it makes up.
static const enum MHD_Result cmhd_yes = MHD_YES;
static const enum MHD_Result cmhd_no = MHD_NO;
static const enum MHD_ConnectionNotificationCode cmhd_connection_started = MHD_CONNECTION_NOTIFY_STARTED;
static const enum MHD_RequestTerminationCode cmhd_completed = MHD_REQUEST_TERMINATED_COMPLETED_OK;
static const enum MHD_ValueKind cmhd_headers = MHD_HEADER_KIND;
static const enum MHD_ResponseMemoryMode cmhd_copy = MHD_RESPMEM_MUST_COPY;
