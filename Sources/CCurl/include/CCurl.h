#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// HTTP and HTTPS requests with the system's libcurl, which is loaded on first use. No function here is
// async-signal-safe.

// What is kept of an answer: enough for the message of an error.
#define CCURL_KEPT_BYTES 4096

// A connection that stays open between requests. Used by one thread at a time.
typedef struct ccurl_session ccurl_session;

typedef struct {
  const char *_Nonnull url;
  const void *_Nullable body;
  size_t body_length;
  // "Name: value".
  const char *_Nonnull const *_Nullable headers;
  size_t header_count;
  // Paths of PEM files; NULL for the system's authorities, and for no client certificate.
  const char *_Nullable authorities;
  const char *_Nullable certificate;
  const char *_Nullable key;
  // For the whole request.
  int64_t timeout_milliseconds;
} ccurl_request;

// Texts end with a zero byte.
typedef struct {
  // 0 if there was no answer.
  int64_t status;
  // Header fields; empty if missing or too long.
  char retry_after[64];
  char date[64];
  char content_type[64];
  // The first bytes of the body.
  unsigned char body[CCURL_KEPT_BYTES];
  size_t body_length;
  // Why there was no answer; empty if there was one.
  char error[256];
} ccurl_answer;

// Returns a session; NULL if libcurl is missing or memory is exhausted. Loads libcurl, so call it first from one thread.
ccurl_session *_Nullable ccurl_open(void);

// Closes the session and its connection.
void ccurl_close(ccurl_session *_Nonnull session);

// Posts the body and waits for the answer, at most for the request's timeout. Fills in all of the answer. Follows no
// redirect, and speaks only HTTP and HTTPS.
void ccurl_post(ccurl_session *_Nonnull session, const ccurl_request *_Nonnull request, ccurl_answer *_Nonnull answer);

// Compresses as zlib (RFC 1950) with the system's zlib, which is loaded on first use. `length` is the room of `target`
// and becomes the number of bytes written. Returns whether it succeeded.
bool ccurl_compress(const void *_Nonnull source, size_t count, void *_Nonnull target, size_t *_Nonnull length);
