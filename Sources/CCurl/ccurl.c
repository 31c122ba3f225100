#define _GNU_SOURCE
#include "CCurl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

// libcurl keeps these numbers and types for ever (curl.se/libcurl/abi.html), so the build needs no headers of it.
enum {
  OPTION_WRITEDATA = 10001,
  OPTION_URL = 10002,
  OPTION_ERRORBUFFER = 10010,
  OPTION_POSTFIELDS = 10015,
  OPTION_HTTPHEADER = 10023,
  OPTION_SSLCERT = 10025,
  OPTION_HEADERDATA = 10029,
  OPTION_POST = 47,
  OPTION_CAINFO = 10065,
  OPTION_SSLKEY = 10087,
  OPTION_NOSIGNAL = 99,
  OPTION_TIMEOUT_MS = 155,
  OPTION_CONNECTTIMEOUT_MS = 156,
  OPTION_PROTOCOLS = 181,
  OPTION_WRITEFUNCTION = 20011,
  OPTION_HEADERFUNCTION = 20079,
  OPTION_POSTFIELDSIZE_LARGE = 30120,
  INFO_RESPONSE_CODE = 0x200002,
  PROTOCOLS_HTTP_AND_HTTPS = 1 | 2,
  GLOBAL_DEFAULT = 3,
  ERROR_BUFFER_BYTES = 256,
};

// The most of a body that is read. No answer to OTLP is longer.
enum { LONGEST_BODY = 1 << 20 };

#define CURL_FUNCTIONS(X)                              \
  X(int, curl_global_init, (long))                     \
  X(void *, curl_easy_init, (void))                    \
  X(void, curl_easy_cleanup, (void *))                 \
  X(void, curl_easy_reset, (void *))                   \
  X(int, curl_easy_setopt, (void *, int, ...))         \
  X(int, curl_easy_getinfo, (void *, int, ...))        \
  X(int, curl_easy_perform, (void *))                  \
  X(const char *, curl_easy_strerror, (int))           \
  X(void *, curl_slist_append, (void *, const char *)) \
  X(void, curl_slist_free_all, (void *))

static struct {
#define POINTER(result, name, parameters) result(*name) parameters;
  CURL_FUNCTIONS(POINTER)
#undef POINTER
} curl;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Never closed: libcurl and its TLS library register functions that run at the end of the process.
static void load(void) {
  // Debian and Fedora; Debian's variant with GnuTLS.
  void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!handle) handle = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
#define FIND(result, name, parameters)                     \
  curl.name = (__typeof__(curl.name))dlsym(handle, #name); \
  if (!curl.name) return;
  CURL_FUNCTIONS(FIND)
#undef FIND
  is_loaded = curl.curl_global_init(GLOBAL_DEFAULT) == 0;
}

// A session is a handle of libcurl.
ccurl_session *ccurl_open(void) {
  pthread_once(&once, load);
  return is_loaded ? curl.curl_easy_init() : NULL;
}

void ccurl_close(ccurl_session *session) { curl.curl_easy_cleanup(session); }

typedef struct {
  ccurl_answer *answer;
  size_t total;
} reading;

static size_t take_body(char *bytes, size_t size, size_t count, void *context) {
  reading *read = context;
  size_t length = size * count;
  read->total += length;
  // Ends the request: fewer bytes taken than given (CURLOPT_WRITEFUNCTION).
  if (read->total > LONGEST_BODY) return 0;
  size_t room = CCURL_KEPT_BYTES - read->answer->body_length;
  size_t kept = length < room ? length : room;
  memcpy(read->answer->body + read->answer->body_length, bytes, kept);
  read->answer->body_length += kept;
  return length;
}

// Copies the value of a header field if it has this name and fits.
static void take_field(const char *line, size_t length, const char *name, char *value, size_t room) {
  size_t name_length = strlen(name);
  if (length <= name_length || line[name_length] != ':' || strncasecmp(line, name, name_length) != 0) return;
  const char *begin = line + name_length + 1, *end = line + length;
  while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
  while (end > begin && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
  if ((size_t)(end - begin) >= room) return;
  memcpy(value, begin, (size_t)(end - begin));
  value[end - begin] = 0;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context) {
  ccurl_answer *answer = ((reading *)context)->answer;
  size_t length = size * count;
  take_field(bytes, length, "Retry-After", answer->retry_after, sizeof answer->retry_after);
  take_field(bytes, length, "Date", answer->date, sizeof answer->date);
  take_field(bytes, length, "Content-Type", answer->content_type, sizeof answer->content_type);
  return length;
}

void ccurl_post(ccurl_session *handle, const ccurl_request *request, ccurl_answer *answer) {
  memset(answer, 0, sizeof *answer);
  // Keeps the connection.
  curl.curl_easy_reset(handle);
  reading read = {.answer = answer};
  char error[ERROR_BUFFER_BYTES] = "";
  void *headers = NULL;
  for (size_t index = 0; index < request->header_count; index++) {
    void *longer = curl.curl_slist_append(headers, request->headers[index]);
    if (longer) headers = longer;
  }
  curl.curl_easy_setopt(handle, OPTION_URL, request->url);
  curl.curl_easy_setopt(handle, OPTION_PROTOCOLS, (long)PROTOCOLS_HTTP_AND_HTTPS);
  curl.curl_easy_setopt(handle, OPTION_POST, 1L);
  curl.curl_easy_setopt(handle, OPTION_POSTFIELDS, request->body ? request->body : "");
  curl.curl_easy_setopt(handle, OPTION_POSTFIELDSIZE_LARGE, (int64_t)request->body_length);
  curl.curl_easy_setopt(handle, OPTION_HTTPHEADER, headers);
  curl.curl_easy_setopt(handle, OPTION_WRITEFUNCTION, take_body);
  curl.curl_easy_setopt(handle, OPTION_WRITEDATA, &read);
  curl.curl_easy_setopt(handle, OPTION_HEADERFUNCTION, take_header);
  curl.curl_easy_setopt(handle, OPTION_HEADERDATA, &read);
  curl.curl_easy_setopt(handle, OPTION_ERRORBUFFER, error);
  // No SIGALRM: the tool waits for signals itself.
  curl.curl_easy_setopt(handle, OPTION_NOSIGNAL, 1L);
  curl.curl_easy_setopt(handle, OPTION_TIMEOUT_MS, (long)request->timeout_milliseconds);
  curl.curl_easy_setopt(handle, OPTION_CONNECTTIMEOUT_MS, (long)request->timeout_milliseconds);
  if (request->authorities) curl.curl_easy_setopt(handle, OPTION_CAINFO, request->authorities);
  if (request->certificate) curl.curl_easy_setopt(handle, OPTION_SSLCERT, request->certificate);
  if (request->key) curl.curl_easy_setopt(handle, OPTION_SSLKEY, request->key);
  int result = curl.curl_easy_perform(handle);
  long status = 0;
  curl.curl_easy_getinfo(handle, INFO_RESPONSE_CODE, &status);
  curl.curl_slist_free_all(headers);
  if (result == 0 || read.total > LONGEST_BODY) {
    answer->status = status;
  } else {
    // An answer that breaks off is none.
    const char *reason = error[0] ? error : curl.curl_easy_strerror(result);
    strncpy(answer->error, reason, sizeof answer->error - 1);
  }
  // The buffers of this call must not stay registered.
  curl.curl_easy_reset(handle);
}

// ---- Compression ------------------------------------------------------------------------------------------------------

// zlib.h: uLong is unsigned long, Bytef is unsigned char.
static int (*compress_bytes)(unsigned char *, unsigned long *, const unsigned char *, unsigned long, int);
static pthread_once_t zlib_once = PTHREAD_ONCE_INIT;

static void load_zlib(void) {
  void *handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle) compress_bytes = (__typeof__(compress_bytes))dlsym(handle, "compress2");
}

bool ccurl_compress(const void *source, size_t count, void *target, size_t *length) {
  // The fastest level: reports are text, which it shrinks to a fifth already.
  enum { FASTEST = 1, Z_OK = 0 };
  pthread_once(&zlib_once, load_zlib);
  if (!compress_bytes) return false;
  unsigned long written = *length;
  if (compress_bytes(target, &written, source, count, FASTEST) != Z_OK) return false;
  *length = written;
  return true;
}
