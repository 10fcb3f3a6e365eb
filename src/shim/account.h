// SPDX-License-Identifier: Apache-2.0
//
// What memory this process holds, block by block, and on which slot it is
// charged. A block is physical: however many handles name it (dups, exports),
// it is charged once and given back with the last. Under the shim's lock.
//
// Blocks that leave the process carry a tag, by which the agent knows them when
// another process reports them as borrowed. What is borrowed is not ours to
// charge; the agent charges it when nobody else is.
//
// Asking comes before the driver call and is the agent's decision; while the
// agent is away, its last word and onAgentLoss decide here.

#ifndef RONDO_SHIM_ACCOUNT_H_
#define RONDO_SHIM_ACCOUNT_H_

#include <cstdint>

#include "shim/agent_link.h"
#include "shim/mapped_array.h"

namespace rondo::shim {

enum class Taken : uint8_t { kCharged, kUncharged, kDenied };

class Account {
 public:
  static constexpr uint32_t kNoBlock = ~0u;

  constexpr Account(Link* links, Health* health)
      : links_(links), health_(health) {}

  // Asks slot `link` for a new block with one name. kUncharged: this slot
  // counts no such memory, or there is no room to note it; *block is kNoBlock
  // then.
  Taken Take(uint32_t link, wire::Kind kind, uint64_t bytes, uint32_t* block);
  // The driver took another size. False: more, and refused; nothing changed.
  bool Resize(uint32_t block, uint64_t bytes);

  // A block that another process made, with one name. bytes and tag may be 0:
  // not known, but not both. kNoBlock: no room, or the slot counts none.
  uint32_t Borrow(uint32_t link, uint64_t bytes, uint32_t tag);
  // Others may borrow the block. Tells the agent, once.
  void Share(uint32_t block, uint32_t tag);
  // The block of that tag, or kNoBlock.
  uint32_t FindTag(uint32_t tag) const;

  uint64_t bytes(uint32_t block) const { return blocks_[block].bytes; }
  uint32_t tag(uint32_t block) const { return blocks_[block].tag; }
  bool borrowed(uint32_t block) const { return blocks_[block].borrowed; }

  void AddName(uint32_t block);
  // The last name gives the block back.
  void DropName(uint32_t block);

  // A descriptor names the blocks exported to it until it is closed. `alone`:
  // the driver puts one object into a descriptor, so an earlier one of that
  // number is gone. Closing is not seen: Reap() looks.
  void AddExport(int fd, uint32_t block, bool alone);
  // Calls f(block) for what was exported to a descriptor of this number.
  template <typename F>
  void ForExports(int fd, F f) {
    for (size_t i = 0; i < exports_.size(); ++i) {
      if (exports_[i].fd == fd) f(exports_[i].block);
    }
  }
  // Gives back what only closed descriptors named. True if there was any.
  bool Reap();

  // Tells a fresh connection what is held.
  void Replay(uint32_t link);
  bool holds_any(uint32_t link) const { return links_[link].own != 0; }

  void Forget();  // after fork

 private:
  struct Block {
    uint64_t bytes;
    uint32_t names;  // 0: free, `next` is the next free one
    uint32_t next;
    wire::Kind kind;
    uint8_t link;
    bool borrowed;
    uint32_t tag;  // 0: it never left
  };
  struct Export {
    int fd;
    uint32_t block;
    sys::FileId file;
  };

  uint32_t NewBlock();
  void FreeBlock(uint32_t block);
  bool Admit(uint32_t block, uint64_t bytes);
  void TellBorrow(uint32_t block);
  void TellShare(uint32_t block);
  bool AdmitLocally(const Link& link, uint64_t more);

  Link* links_;
  Health* health_;
  MappedArray<Block> blocks_;
  MappedArray<Export> exports_;
  uint32_t free_ = kNoBlock;
};

}  // namespace rondo::shim

#endif  // RONDO_SHIM_ACCOUNT_H_
