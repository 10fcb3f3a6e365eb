// SPDX-License-Identifier: Apache-2.0

#include "shim/account.h"

namespace rondo::shim {
namespace {

// Ids are the agent's to store, not to understand; 0 names nothing.
uint64_t IdOf(uint32_t block) { return uint64_t{block} + 1; }

}  // namespace

uint32_t Account::NewBlock() {
  if (free_ != kNoBlock) {
    const uint32_t block = free_;
    free_ = blocks_[block].next;
    return block;
  }
  if (!blocks_.Push({})) return kNoBlock;
  return static_cast<uint32_t>(blocks_.size() - 1);
}

void Account::FreeBlock(uint32_t block) {
  blocks_[block] = {.bytes = 0, .names = 0, .next = free_};
  free_ = block;
}

Taken Account::Take(uint32_t link, wire::Kind kind, uint64_t bytes,
                    uint32_t* block) {
  *block = kNoBlock;
  const wire::Policy& policy = links_[link].policy();
  const bool ignored =
      kind == wire::Kind::kManaged && policy.managed == wire::Managed::kIgnore;
  if (links_[link].known() &&
      (policy.memory == wire::Memory::kOff || ignored)) {
    return Taken::kUncharged;
  }
  const uint32_t made = NewBlock();
  if (made == kNoBlock) {
    health_->Set(wire::Reason::kTableFull);
    health_->Count(wire::Counter::kUncharged);
    return Taken::kUncharged;
  }
  blocks_[made] = {.bytes = 0,
                   .names = 1,
                   .next = 0,
                   .kind = kind,
                   .link = static_cast<uint8_t>(link)};
  if (!Admit(made, bytes)) {
    FreeBlock(made);
    return Taken::kDenied;
  }
  *block = made;
  return Taken::kCharged;
}

bool Account::AdmitLocally(const Link& link, uint64_t more) {
  const wire::Policy& policy = link.policy();
  if (!link.known() || policy.memory != wire::Memory::kEnforce ||
      policy.on_agent_loss == wire::OnAgentLoss::kOpen) {
    return true;
  }
  const uint64_t used = link.own + link.others;
  return used <= policy.limit && more <= policy.limit - used;
}

bool Account::Admit(uint32_t index, uint64_t bytes) {
  const Block& block = blocks_[index];
  Link& link = links_[block.link];
  auto reserve = wire::Make<wire::Reserve>(0);
  reserve.id = IdOf(index);
  reserve.bytes = bytes;
  reserve.kind = block.kind;
  const bool must_ask =
      bytes > block.bytes && link.policy().memory == wire::Memory::kEnforce;
  wire::Answer answer;
  if (link.connected() && must_ask && link.Ask(reserve, &answer, health_)) {
    if (answer.verdict == wire::Verdict::kDenied) {
      link.others = answer.used > link.own ? answer.used - link.own : 0;
      return false;
    }
    link.own += bytes - block.bytes;
    blocks_[index].bytes = bytes;
    link.others = answer.used > link.own ? answer.used - link.own : 0;
    return true;
  }
  if (must_ask && !link.connected() &&
      !AdmitLocally(link, bytes - block.bytes)) {
    health_->Count(wire::Counter::kDeniedLocally);
    return false;
  }
  // Not to be refused: the agent only has to know.
  reserve.held = 1;
  if (link.connected()) link.Tell(reserve, health_);
  link.own += bytes - block.bytes;
  blocks_[index].bytes = bytes;
  return true;
}

void Account::TellBorrow(uint32_t index) {
  Link& link = links_[blocks_[index].link];
  auto borrow = wire::Make<wire::Borrow>(0);
  borrow.id = IdOf(index);
  borrow.bytes = blocks_[index].bytes;
  borrow.tag = blocks_[index].tag;
  if (link.connected()) link.Tell(borrow, health_);
}

void Account::TellShare(uint32_t index) {
  Link& link = links_[blocks_[index].link];
  auto shared = wire::Make<wire::Shared>(0);
  shared.id = IdOf(index);
  shared.tag = blocks_[index].tag;
  if (link.connected()) link.Tell(shared, health_);
}

uint32_t Account::Borrow(uint32_t link, uint64_t bytes, uint32_t tag) {
  if (links_[link].known() &&
      links_[link].policy().memory == wire::Memory::kOff) {
    return kNoBlock;
  }
  const uint32_t made = NewBlock();
  if (made == kNoBlock) {
    health_->Set(wire::Reason::kTableFull);
    health_->Count(wire::Counter::kUncharged);
    return kNoBlock;
  }
  blocks_[made] = {.bytes = bytes,
                   .names = 1,
                   .next = 0,
                   .kind = wire::Kind::kVideo,
                   .link = static_cast<uint8_t>(link),
                   .borrowed = true,
                   .tag = tag};
  TellBorrow(made);
  return made;
}

void Account::Share(uint32_t block, uint32_t tag) {
  if (blocks_[block].tag != 0 || blocks_[block].borrowed) return;
  blocks_[block].tag = tag;
  TellShare(block);
}

uint32_t Account::FindTag(uint32_t tag) const {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].names != 0 && blocks_[i].tag == tag) return i;
  }
  return kNoBlock;
}

bool Account::Resize(uint32_t block, uint64_t bytes) {
  return blocks_[block].bytes == bytes || Admit(block, bytes);
}

void Account::AddName(uint32_t block) { ++blocks_[block].names; }

void Account::DropName(uint32_t block) {
  if (--blocks_[block].names != 0) return;
  Link& link = links_[blocks_[block].link];
  if (!blocks_[block].borrowed) link.own -= blocks_[block].bytes;
  auto release = wire::Make<wire::Release>(0);
  release.id = IdOf(block);
  FreeBlock(block);
  if (link.connected()) link.Tell(release, health_);
}

void Account::AddExport(int fd, uint32_t block, bool alone) {
  Export made{fd, block, {}};
  if (!sys::GetFileId(fd, &made.file)) return;
  for (size_t i = exports_.size(); i-- > 0;) {
    if (exports_[i].fd != fd) continue;
    if (exports_[i].block == block) return;
    if (!alone && exports_[i].file == made.file) continue;
    const uint32_t gone = exports_[i].block;
    exports_.RemoveAt(i);
    DropName(gone);
  }
  if (exports_.Push(made)) AddName(block);
}

bool Account::Reap() {
  bool any = false;
  for (size_t i = exports_.size(); i-- > 0;) {
    sys::FileId now;
    if (sys::GetFileId(exports_[i].fd, &now) && now == exports_[i].file) {
      continue;
    }
    const uint32_t gone = exports_[i].block;
    exports_.RemoveAt(i);
    any = any || blocks_[gone].names == 1;
    DropName(gone);
  }
  return any;
}

void Account::Replay(uint32_t link) {
  for (uint32_t i = 0; i < blocks_.size() && links_[link].connected(); ++i) {
    if (blocks_[i].names == 0 || blocks_[i].link != link) continue;
    if (blocks_[i].borrowed) {
      TellBorrow(i);
      continue;
    }
    auto reserve = wire::Make<wire::Reserve>(0);
    reserve.id = IdOf(i);
    reserve.bytes = blocks_[i].bytes;
    reserve.kind = blocks_[i].kind;
    reserve.held = 1;
    links_[link].Tell(reserve, health_);
    if (blocks_[i].tag != 0) TellShare(i);
  }
}

void Account::Forget() {
  blocks_.Forget();
  exports_.Forget();
  free_ = kNoBlock;
}

}  // namespace rondo::shim
