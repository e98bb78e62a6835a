// SPDX-License-Identifier: GPL-2.0-or-later
// What becomes of all packets of a region, of which the ways that one of them may go are the witness.
#include "space/ending.h"

#include <gtest/gtest.h>

namespace sidetrack::space {
namespace {

using Kind = Outcome::Kind;
using Answers = Outcome::Answers;

Possibility way(Kind kind, const char* interface = "", Answers answers = Answers::arrive) {
  Possibility made;
  made.trace.outcome.kind = kind;
  made.trace.outcome.at = {*Address::parse("10.0.0.1"), 80};
  made.trace.outcome.interface = interface;
  made.trace.outcome.answers = answers;
  return made;
}

Possibility redirected(std::uint16_t port, const char* listener = "") {
  Possibility made = way(Kind::lands);
  made.trace.translated = true;
  made.trace.outcome.at = {*Address::parse("127.0.0.1"), port};
  made.trace.outcome.listener = listener;
  return made;
}

Possibility unknown(const char* subject) {
  Possibility made = way(Kind::unknown);
  made.trace.outcome.subject = subject;
  return made;
}

Possibility for_want_of(Possibility one, std::vector<std::string> unknowns) {
  one.unknowns = std::move(unknowns);
  return one;
}

std::string text(const std::vector<Possibility>& all) { return ending_text(ending_of(all)); }

TEST(Ending, OfOneWay) {
  EXPECT_EQ(text({way(Kind::lands)}), "reaches the pod untouched");
  EXPECT_EQ(text({way(Kind::leaves, "eth0")}), "leaves untouched, by eth0");
  EXPECT_EQ(text({way(Kind::leaves, "e\x1b")}), "leaves untouched, by e\\x1b");
  EXPECT_EQ(text({way(Kind::forwarded, "eth0")}), "is not for this pod: goes on by eth0 if the pod forwards");
  EXPECT_EQ(text({way(Kind::dropped)}), "dropped");
  EXPECT_EQ(text({way(Kind::unroutable)}), "never sent: there is no route");
  EXPECT_EQ(text({unknown("`-j QUEUE`")}), "unknown: `-j QUEUE`");
  EXPECT_EQ(text({redirected(15001, "Envoy outbound")}), "127.0.0.1:15001 (Envoy outbound)");
  EXPECT_EQ(text({redirected(15001)}), "127.0.0.1:15001");
  EXPECT_EQ(text({way(Kind::lands, "", Answers::lost)}), "reaches the pod untouched; replies are lost");
  EXPECT_EQ(text({way(Kind::leaves, "eth0", Answers::unknown)}),
            "leaves untouched, by eth0; whether replies arrive is unknown");
}

TEST(Ending, OfOneThatIsTranslated) {
  Possibility one = redirected(80);
  one.trace.outcome.at.port_origin = Origin::destination;
  EXPECT_EQ(text({one}), "127.0.0.1, port unchanged");
  one = way(Kind::lands);
  one.trace.outcome.transparent = true;
  one.trace.outcome.transparent_port = 15006;
  EXPECT_EQ(text({one}), "port 15006 by TPROXY");
  one.trace.outcome.listener = "Envoy inbound";
  EXPECT_EQ(text({one}), "port 15006 (Envoy inbound) by TPROXY");
  one = way(Kind::leaves, "eth0");
  one.trace.outcome.source = NewSource{Address::parse("192.0.2.77")};
  EXPECT_EQ(text({one}), "leaves from 192.0.2.77, by eth0");
  Possibility by_kernel = one;
  by_kernel.trace.outcome.source = NewSource{};
  EXPECT_EQ(text({by_kernel}), "leaves from an address that the kernel chooses, by eth0");
  EXPECT_NE(ending_of({by_kernel}), ending_of({way(Kind::leaves, "eth0")}));
  one.trace.translated = true;
  EXPECT_EQ(text({one}), "leaves by eth0 to 10.0.0.1:80 from 192.0.2.77");
  one.trace.outcome.kind = Kind::forwarded;
  EXPECT_EQ(text({one}), "is not for this pod: goes on by eth0 to 10.0.0.1:80 from 192.0.2.77 if the pod forwards");
  one = way(Kind::lands);
  one.trace.outcome.source = NewSource{Address::parse("192.0.2.77")};
  EXPECT_EQ(text({one}), "reaches the pod from 192.0.2.77");
  one.trace.outcome.transparent = true;
  one.trace.outcome.transparent_port = 15006;
  EXPECT_EQ(text({one}), "port 15006 by TPROXY from 192.0.2.77");
  // Who has a port is not said of what is left alone.
  one = way(Kind::lands);
  one.trace.outcome.listener = "the app";
  EXPECT_EQ(text({one}), "reaches the pod untouched");
  EXPECT_EQ(ending_of({one}).listener, "");
}

TEST(Ending, OfSeveralWaysIsKnownIfTheyEndAlike) {
  EXPECT_EQ(text({redirected(15001), redirected(15001)}), "127.0.0.1:15001");
  EXPECT_EQ(text({way(Kind::lands), way(Kind::lands, "", Answers::lost)}),
            "reaches the pod untouched; whether replies arrive is unknown");
}

TEST(Ending, OfSeveralWaysIsOneOfThem) {
  const Ending either = ending_of({for_want_of(redirected(15001), {"`b`", "`a`"}),
                                   for_want_of(way(Kind::dropped), {"`b`"}), for_want_of(redirected(15001), {"`c`"})});
  EXPECT_EQ(ending_text(either), "unknown: `a`, `b`, `c` (127.0.0.1:15001, or dropped)");
  EXPECT_EQ(either.kind, Kind::unknown);
  EXPECT_EQ(either.either.size(), 2U);
  EXPECT_EQ(either,
            ending_of({for_want_of(way(Kind::dropped), {"`c`", "`a`"}), for_want_of(redirected(15001), {"`b`"})}));
  EXPECT_NE(either, ending_of({for_want_of(way(Kind::dropped), {"`a`"}), for_want_of(redirected(15001), {"`b`"})}));
  EXPECT_NE(either, ending_of({for_want_of(way(Kind::dropped), {"`a`", "`b`", "`c`"}), redirected(15002)}));
  // One that ends nobody knows where makes the others say nothing.
  EXPECT_EQ(text({for_want_of(redirected(15001), {"`b`"}), unknown("`-j X`"), unknown("`-j A`"), unknown("`-j X`")}),
            "unknown: `-j A`, `-j X`");
}

TEST(Ending, IsEqualByWhereItEnds) {
  const Ending one = ending_of({redirected(15001, "Envoy outbound")});
  EXPECT_EQ(one, ending_of({redirected(15001, "another name")}));
  EXPECT_NE(one, ending_of({redirected(15002, "Envoy outbound")}));
  EXPECT_NE(ending_of({way(Kind::leaves, "eth0")}), ending_of({way(Kind::leaves, "net1")}));
  EXPECT_NE(ending_of({way(Kind::leaves, "eth0")}), ending_of({way(Kind::forwarded, "eth0")}));
  EXPECT_NE(ending_of({way(Kind::lands)}), ending_of({way(Kind::lands, "", Answers::lost)}));
  EXPECT_EQ(ending_of({way(Kind::lands, "eth0")}), ending_of({way(Kind::lands, "net1")}));
}

TEST(Ending, SaysInShortWhatIsNotKnown) {
  Ending one = ending_of({unknown(std::string(300, 'x').c_str())});
  EXPECT_LT(unknown_words(one).size(), 200U);
  EXPECT_NE(one, ending_of({unknown(std::string(301, 'x').c_str())}));
}

// Else thousands of them are compared one by one.
TEST(Ending, HasAHashByWhatIsNotKnown) {
  const auto of = [](const char* subject, std::uint16_t port) {
    return ending_of({for_want_of(redirected(port), {subject}), for_want_of(way(Kind::dropped), {subject})});
  };
  EXPECT_EQ(hash_of(of("`a`", 1)), hash_of(of("`a`", 1)));
  EXPECT_NE(hash_of(of("`a`", 1)), hash_of(of("`b`", 1)));
  EXPECT_NE(hash_of(of("`a`", 1)), hash_of(of("`a`", 2)));
}

}  // namespace
}  // namespace sidetrack::space
