#include "runtime/http/answer_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "runtime/http/request_head.hpp"

namespace lethe {
namespace {

struct known_status {
  int status;
  std::string_view name, message;  // a message for what this server itself may refuse
};

constexpr known_status statuses[] = {
    {200, "OK", ""},
    {201, "Created", ""},
    {202, "Accepted", ""},
    {204, "No Content", ""},
    {304, "Not Modified", ""},
    {400, "Bad Request", "The request is not well-formed HTTP."},
    {401, "Unauthorized", ""},
    {403, "Forbidden", ""},
    {404, "Not Found", ""},
    {405, "Method Not Allowed", ""},
    {408, "Request Timeout", "The request took too long to arrive."},
    {409, "Conflict", ""},
    {413, "Content Too Large", "The request's body is too large."},
    {415, "Unsupported Media Type", ""},
    {417, "Expectation Failed", "Only the expectation 100-continue can be met."},
    {422, "Unprocessable Content", ""},
    {429, "Too Many Requests", ""},
    {431, "Request Header Fields Too Large", "The request's header fields are too large."},
    {500, "Internal Server Error", ""},
    {501, "Not Implemented", "The method or transfer coding is not implemented."},
    {502, "Bad Gateway", ""},
    {503, "Service Unavailable", "The server has no room for this now; try again shortly."},
    {504, "Gateway Timeout", ""},
    {505, "HTTP Version Not Supported", "Only HTTP/1.1 and HTTP/1.0 are spoken here."},
};

known_status status_of(int status) {
  auto at = std::ranges::find(statuses, status, &known_status::status);
  return at == std::end(statuses) ? known_status{status, "", ""} : *at;
}

std::string date_now() {
  std::time_t now = std::time(nullptr);
  std::tm t{};
  gmtime_r(&now, &t);
  constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[t.tm_wday], t.tm_mday,
                     months[t.tm_mon], 1900 + t.tm_year, t.tm_hour, t.tm_min, t.tm_sec);
}

/// Fields that say how the message is framed are written here and nowhere else.
bool may_say(std::string_view name) {
  http_head ours;
  for (auto mine : {"content-length", "transfer-encoding", "connection", "content-type", "date"})
    ours.fields.push_back({mine, "x"});
  return is_token(name) && ours.field(name).empty();
}

}  // namespace

body_frame frame_of(const http_answer& answer, bool old_client) {
  if (answer.status == 204 || answer.status == 304) return body_frame::none;
  if (answer.content_length) return body_frame::length;
  return old_client ? body_frame::until_close : body_frame::chunks;
}

std::optional<std::string> write_answer_head(const http_answer& answer, body_frame frame,
                                             bool close) {
  if (answer.status < 200 || answer.status > 599) return {};
  std::string head;
  auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", answer.status,
                 status_of(answer.status).name, date_now());
  if (frame != body_frame::none) {
    if (!is_field_value(answer.content_type)) return {};
    fmt::format_to(out, "Content-Type: {}\r\n", answer.content_type);
  }
  if (frame == body_frame::length)
    fmt::format_to(out, "Content-Length: {}\r\n", answer.content_length.value_or(0));
  if (frame == body_frame::chunks) head += "Transfer-Encoding: chunked\r\n";
  for (const auto& [name, value] : answer.fields) {
    if (!may_say(name) || !is_field_value(value)) return {};
    fmt::format_to(out, "{}: {}\r\n", name, value);
  }
  head += close ? "Connection: close\r\n\r\n" : "\r\n";
  return head;
}

std::string write_refusal(int status, bool with_body) {
  auto body = fmt::format(
      R"({{"error":{{"message":"{}","type":"invalid_request_error","param":null,"code":null}}}})",
      status_of(status).message);
  http_answer answer{.status = status, .content_length = body.size()};
  if (status == 503) answer.fields.emplace_back("Retry-After", "1");
  auto text = write_answer_head(answer, body_frame::length, true).value_or("");
  return with_body ? text + body : text;
}

}  // namespace lethe
