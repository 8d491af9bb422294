#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "raw_client.h"
#include "s3sim/s3sim.h"

namespace thermo::s3sim {

/// A running simulator and a client on it.
struct Sim {
  explicit Sim(Options options = {}) {
    auto started = start(options);
    EXPECT_TRUE(started) << started.error().describe();
    server = std::move(*started);
    client = std::make_unique<test::RawClient>(server->port());
  }
  test::RawResponse get(std::string_view target, std::string_view headers = "") {
    return client->request("GET", target, headers);
  }
  test::RawResponse put(std::string_view target, std::string_view body = "", std::string_view headers = "") {
    return client->request("PUT", target, headers, body);
  }
  [[nodiscard]] nlohmann::json stats() {
    return nlohmann::json::parse(test::RawClient(server->port()).request("GET", "/_sim/stats").body);
  }
  void faults(std::string_view spec) {
    EXPECT_EQ(test::RawClient(server->port()).request("PUT", "/_sim/faults", "", spec).status, 200) << spec;
  }
  void options(std::string_view json) {
    EXPECT_EQ(test::RawClient(server->port()).request("PUT", "/_sim/options", "", json).status, 200) << json;
  }

  std::unique_ptr<Server> server;
  std::unique_ptr<test::RawClient> client;
};

/// The value of the first element of that name; "" when absent.
inline std::string xml_value(const std::string& document, const std::string& name) {
  const std::size_t begin = document.find("<" + name + ">");
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + name.size() + 2;
  return document.substr(from, document.find("</" + name + ">", from) - from);
}

}  // namespace thermo::s3sim
