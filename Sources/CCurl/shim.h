#pragma once
// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, which Swift cannot call:
// one typed function for each argument type.
#include <curl/curl.h>
static inline CURLcode ccurl_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_set_offset(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode ccurl_set_list(CURL *h, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(h, o, v); }
typedef size_t (*ccurl_data_callback)(char *, size_t, size_t, void *);
static inline CURLcode ccurl_set_data_callback(CURL *h, CURLoption o, ccurl_data_callback f) { return curl_easy_setopt(h, o, f); }
static inline CURLcode ccurl_set_opensocket_callback(CURL *h, curl_opensocket_callback f) { return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, f); }
static inline CURLcode ccurl_set_prereq_callback(CURL *h, curl_prereq_callback f) { return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, f); }
static inline CURLcode ccurl_get_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_get_string(CURL *h, CURLINFO i, char **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_get_socket(CURL *h, CURLINFO i, curl_socket_t *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_get_pointer(CURL *h, CURLINFO i, void **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *m, curl_socket_callback f, void *context) {
  curl_multi_setopt(m, CURLMOPT_SOCKETDATA, context);
  return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, f);
}
static inline CURLMcode ccurl_multi_set_timer_callback(CURLM *m, curl_multi_timer_callback f, void *context) {
  curl_multi_setopt(m, CURLMOPT_TIMERDATA, context);
  return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, f);
}
static inline CURLMcode ccurl_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURL *ccurl_message_handle(CURLMsg *m) { return m->easy_handle; }
static inline CURLcode ccurl_message_result(CURLMsg *m) { return m->data.result; }
static inline CURLcode ccurl_get_offset(CURL *h, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode ccurl_set_pointer_data(CURL *h, void *context) {
  curl_easy_setopt(h, CURLOPT_PRIVATE, context);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, context);
  curl_easy_setopt(h, CURLOPT_READDATA, context);
  curl_easy_setopt(h, CURLOPT_HEADERDATA, context);
  curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, context);
  return curl_easy_setopt(h, CURLOPT_PREREQDATA, context);
}
