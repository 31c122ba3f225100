// Publishes a span as a tracer does that implements OpenTelemetry's thread context (OTEP 4947).

#include <stdint.h>
#include <string.h>

struct record {
  uint8_t trace_id[16];
  uint8_t span_id[8];
  uint8_t valid;
  uint8_t trace_flags;
  uint16_t attributes_size;
  uint8_t attributes[16];
} __attribute__((packed, aligned(2)));

__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;

static __thread struct record record;

// 0: none; 1: a span; 2: one that is being written; 3: a record without an active span.
__attribute__((visibility("default"))) void publish_span(int kind) {
  static const uint8_t attribute[] = {0, 5, '/', 'f', 'e', 'e', 'd'};
  memset(&record, 0, sizeof record);
  for (int index = 0; index < 16 && kind != 3; index++) record.trace_id[index] = (uint8_t)(0xa0 + index);
  for (int index = 0; index < 8 && kind != 3; index++) record.span_id[index] = (uint8_t)(0xb0 + index);
  record.valid = kind == 2 ? 0 : 1;
  record.attributes_size = sizeof attribute;
  memcpy(record.attributes, attribute, sizeof attribute);
  otel_thread_ctx_v1 = kind == 0 ? 0 : &record;
}
