// SPDX-License-Identifier: Apache-2.0
#include "activity/ring.h"

#include <cstring>

namespace rondo::activity {

RingRead ReadRing(const volatile rm::EventHeader* header,
                  const volatile rm::SwitchRecord* records, uint32_t capacity,
                  uint32_t get) {
  RingRead read;
  // Records below put were written before put was.
  const uint32_t put = __atomic_load_n(&header->put, __ATOMIC_ACQUIRE);
  read.drops = header->drops;
  read.next_get = get;
  if (capacity == 0 || put >= capacity || get >= capacity) {
    read.sane = false;
    return read;
  }
  const uint32_t count = put >= get ? put - get : capacity - get + put;
  read.records.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t at = (get + i) % capacity;
    // The slot is ours until it is given back, so it stands still.
    memcpy(&read.records[i], const_cast<const rm::SwitchRecord*>(&records[at]),
           sizeof(rm::SwitchRecord));
  }
  read.next_get = put;
  return read;
}

}  // namespace rondo::activity
