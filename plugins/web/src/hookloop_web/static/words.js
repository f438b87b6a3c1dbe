// Words and numbers as people read them. Pure functions.

export const seconds = (value) => (value >= 10 ? `${value.toFixed(0)} s` : value >= 0.1 ? `${value.toFixed(1)} s` : `${(value * 1000).toFixed(0)} ms`);

export const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

export const clock = (at) => (at ? new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : "");

export function who(block) {
  if (block.origin === "plugin") return block.hook ? `${block.who} · ${block.hook}` : block.who || "plugin";
  if (block.kind === "call") return block.name;
  if (block.kind === "thinking") return "thinking";
  return { user: "you", model: "model", tool: "tool", engine: "engine" }[block.origin] || block.origin;
}

// A plugin keeps its colour: its name picks one of the hues that user, model, tool and errors leave free.
const HUES = [28, 330, 75, 300, 48, 190, 110, 345];

export function hue(name) {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + char.codePointAt(0)) % 100003;
  return { "--h": HUES[sum % HUES.length] };
}

export const paint = (block) => (block.origin === "plugin" ? hue(block.who || "") : {});

export const STATES = {
  streaming: "writing…", writing: "writing…", waiting: "waits", running: "runs…", done: "done", error: "error",
  asked: "waits for you", cut: "cut off", discarded: "discarded", whole: "", "": "",
};

export function tokens(usage) {
  if (!usage || (usage.total == null && usage.input == null)) return "";
  const parts = [`${usage.input ?? "?"} in, ${usage.output ?? "?"} out`];
  const share = cachedShare(usage);
  if (share > 0) parts.push(`${Math.round(share * 100)} % cached`);
  if (usage.cost != null) parts.push(`cost ${usage.cost.toFixed(4)}`);
  return parts.join(", ");
}

// The vendors count differently: some leave cached tokens out of `input`, so the whole is what was read in any case.
export function cachedShare(usage) {
  const cached = usage?.cache_read || 0;
  if (!cached) return 0;
  const read = usage.total != null && usage.output != null ? usage.total - usage.output : (usage.input || 0);
  return Math.min(1, cached / Math.max(cached, read));
}
