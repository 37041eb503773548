#include "runtime/api/write_answer.hpp"

namespace lethe {

namespace {

/// A token's bytes as numbers: its text alone may be no valid UTF-8.
void write_bytes(json_text& out, std::string_view text) {
  out.open('[');
  for (char c : text) out.number(uint64_t{static_cast<unsigned char>(c)});
  out.close(']');
}

void write_likely(json_text& out, std::string_view text, float logprob) {
  out.key("token").text(text).key("logprob").number(double(logprob)).key("bytes");
  write_bytes(out, text);
}

void write_chat_logprobs(json_text& out, const said_choice& c) {
  out.open('{').key("content").open('[');
  for (const auto& t : c.tokens) {
    out.open('{');
    write_likely(out, t.text, t.logprob);
    out.key("top_logprobs").open('[');
    for (const auto& a : t.top) {
      out.open('{');
      write_likely(out, a.text, a.logprob);
      out.close('}');
    }
    out.close(']').close('}');
  }
  out.close(']').close('}');
}

void write_completion_logprobs(json_text& out, const said_choice& c) {
  out.open('{').key("tokens").open('[');
  for (const auto& t : c.tokens) out.text(t.text);
  out.close(']').key("token_logprobs").open('[');
  for (const auto& t : c.tokens) t.first ? out.null() : out.number(double(t.logprob));
  out.close(']').key("top_logprobs").open('[');
  for (const auto& t : c.tokens) {
    if (t.first) {
      out.null();
      continue;
    }
    out.open('{');
    for (const auto& a : t.top) out.key(a.text).number(double(a.logprob));
    out.close('}');
  }
  out.close(']').key("text_offset").open('[');
  uint64_t offset = c.text_offset;
  for (const auto& t : c.tokens) {
    out.number(offset);
    offset += t.text.size();
  }
  out.close(']').close('}');
}

void write_end(json_text& out, const said_choice& c, api_call call, bool logprobs) {
  out.key("logprobs");
  if (!logprobs)
    out.null();
  else if (call == api_call::chat)
    write_chat_logprobs(out, c);
  else
    write_completion_logprobs(out, c);
  out.key("finish_reason");
  c.finish_reason ? out.text(c.finish_reason) : out.null();
}

void write_usage(json_text& out, const api_usage& u) {
  out.open('{').key("prompt_tokens").number(uint64_t{u.prompt_tokens});
  out.key("completion_tokens").number(uint64_t{u.completion_tokens});
  out.key("total_tokens").number(uint64_t{u.prompt_tokens} + u.completion_tokens).close('}');
}

std::pmr::string event(const json_text& json, std::pmr::memory_resource* memory) {
  std::pmr::string text(memory);
  text.reserve(json.str().size() + 8);
  text.append("data: ").append(json.str()).append("\n\n");
  return text;
}

}  // namespace

void answer_writer::head(json_text& out, bool streamed) const {
  const char* object = call_ == api_call::completion ? "text_completion"
                       : streamed                    ? "chat.completion.chunk"
                                                     : "chat.completion";
  out.open('{').key("id").text(id_).key("object").text(object);
  out.key("created").number(uint64_t(created_)).key("model").text(model_);
}

void answer_writer::write_choice(json_text& out, const said_choice& c) const {
  out.open('{').key("index").number(uint64_t{c.index});
  if (call_ == api_call::completion) {
    out.key("text").text(c.text);
  } else {
    out.key("message").open('{').key("role").text("assistant").key("content");
    c.text.empty() && !c.tool_calls.empty() ? out.null() : out.text(c.text);
    if (!c.tool_calls.empty()) out.key("tool_calls").raw(c.tool_calls);
    out.close('}');
  }
  write_end(out, c, call_, logprobs_);
  out.close('}');
}

void answer_writer::write_delta(json_text& out, const said_choice& c, bool first) const {
  out.open('{').key("index").number(uint64_t{c.index});
  if (call_ == api_call::completion) {
    out.key("text").text(c.text);
  } else {
    out.key("delta").open('{');
    if (first) out.key("role").text("assistant");
    if (first || !c.text.empty()) out.key("content").text(c.text);
    if (!c.tool_calls.empty()) out.key("tool_calls").raw(c.tool_calls);
    out.close('}');
  }
  write_end(out, c, call_, logprobs_ && !c.tokens.empty());
  out.close('}');
}

std::pmr::string answer_writer::whole(std::span<const said_choice> choices,
                                      const api_usage& usage) const {
  json_text out(memory_);
  head(out, false);
  out.key("choices").open('[');
  for (const auto& c : choices) write_choice(out, c);
  out.close(']').key("usage");
  write_usage(out, usage);
  out.close('}');
  return out.str();
}

std::pmr::string answer_writer::chunk(const said_choice& choice, bool first,
                                      bool null_usage) const {
  json_text out(memory_);
  head(out, true);
  out.key("choices").open('[');
  write_delta(out, choice, first);
  out.close(']');
  if (null_usage) out.key("usage").null();
  out.close('}');
  return event(out, memory_);
}

std::pmr::string answer_writer::usage_chunk(const api_usage& usage) const {
  json_text out(memory_);
  head(out, true);
  out.key("choices").open('[').close(']').key("usage");
  write_usage(out, usage);
  out.close('}');
  return event(out, memory_);
}

}  // namespace lethe
