#pragma once
// Linux calls that Swift's Glibc module leaves out.
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
static inline int ferry_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
static inline int ferry_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
static inline int ferry_epoll_ctl(int epoll, int operation, int descriptor, uint32_t events, uint64_t tag) {
  struct epoll_event event = {.events = events, .data = {.u64 = tag}};
  return epoll_ctl(epoll, operation, descriptor, &event);
}
static inline uint64_t ferry_epoll_tag(const struct epoll_event *event) { return event->data.u64; }
int prctl(int option, ...);
static inline void ferry_name_thread(const char *name) { prctl(15 /* PR_SET_NAME */, (unsigned long)name, 0, 0, 0); }
