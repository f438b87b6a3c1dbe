// The page's one component: chat on one side, timeline on the other. Talks to the server by "ask" and by its methods.
import { ChatBlock } from "hookloop-web/block.js";
import { Board } from "hookloop-web/board.js";
import { TurnLine } from "hookloop-web/timeline.js";
import { clock, hue as hueOf } from "hookloop-web/words.js";

const QUIET = new Set(["stored", "view_cut", "decision"]); // told in the timeline alone
const ORIGINS = ["user", "model", "tool", "engine"];

export default {
  components: { ChatBlock, TurnLine },
  data() {
    return {
      turns: [], room: { running: false, interrupted: false, trouble: "", readonly: false }, conversation: "", list: [],
      limits: {}, model: "", draft: "", notice: "", spoken: "", shown: null, unread: [], loaded: false, examples: [],
    };
  },
  created() {
    this.board = new Board(this.turns);
    this.heard = { key: "", at: 0 };
  },
  mounted() {
    this.ask({ do: "ready" });
  },
  computed: {
    plugins() {
      const names = new Set();
      for (const turn of this.turns) for (const block of turn.blocks) if (block.origin === "plugin" && block.who) names.add(block.who);
      return [...names];
    },
    origins: () => ORIGINS,
  },
  methods: {
    clock,
    hueOf,
    ask(wish) {
      this.$emit("ask", wish);
    },
    reset(all) {
      this.board.reset(all.turns);
      Object.assign(this, { conversation: all.conversation, list: all.list, limits: all.limits, model: all.model, notice: "" });
      this.examples = all.examples;
      this.room = all.room;
      this.loaded = true;
      this.heard = { key: "", at: 0 };
      this.unread = [];
      if (!all.room.readonly) history.replaceState(null, "", "?c=" + encodeURIComponent(all.conversation));
      this.follow(true);
    },
    apply(ops) {
      const stay = [this.$refs.chat, this.$refs.line].map((box) => box && box.scrollHeight - box.scrollTop - box.clientHeight > 80);
      for (const op of ops) {
        if (op.op === "room") this.room = op.room;
        else if (op.op === "list") this.list = op.list;
        else this.board.apply(op);
        if (op.op === "block" && op.block.origin === "user") this.unread = this.unread.filter((text) => text.slice(0, 8000) !== op.block.text);
      }
      if (!this.room.running) this.unread = [];
      this.speak();
      this.$nextTick(() => this.follow(false, stay));
    },
    // The newest lines stay in sight, unless somebody scrolled up to read.
    follow(always, stay = []) {
      this.$nextTick(() => [this.$refs.chat, this.$refs.line].forEach((box, at) => {
        if (box && (always || !stay[at])) box.scrollTop = box.scrollHeight;
      }));
    },
    // A screen reader hears whole sentences of the stream, not its pieces.
    speak() {
      const turn = this.turns[this.turns.length - 1];
      const block = turn?.blocks.findLast((one) => one.kind === "reply" || one.state === "asked");
      if (!block) return;
      const key = block.turn + block.key;
      if (this.heard.key !== key) this.heard = { key, at: 0 };
      if (block.state === "asked") {
        if (this.heard.at === 0) this.spoken = `${block.name} waits for your decision. ${block.question || ""}`;
        this.heard.at = 1;
        return;
      }
      const rest = block.text.slice(this.heard.at);
      const end = block.state === "streaming" ? Math.max(...[". ", "\n", "。", "？", "! ", "? "].map((mark) => rest.lastIndexOf(mark))) + 1 : rest.length;
      if (end > 0) this.spoken = rest.slice(0, end).slice(-1000);
      this.heard.at += Math.max(0, end);
    },
    tell(text) {
      this.notice = text;
    },
    show(detail) {
      this.shown = detail;
      this.$nextTick(() => this.$refs.dialog.open || this.$refs.dialog.showModal());
    },
    say() {
      const text = this.draft;
      if (!text.trim()) return;
      this.notice = "";
      if (this.room.running) this.unread.push(text);
      this.ask({ do: "say", text });
      this.draft = "";
      this.follow(true);
    },
    // The form that had the focus goes away, so the focus goes to where one writes.
    decide(decision) {
      this.notice = "";
      this.ask({ do: "decide", ...decision });
      this.$refs.draft?.focus();
    },
    enter(event) {
      if (event.isComposing || event.shiftKey) return;
      event.preventDefault();
      this.say();
    },
    visible(turn) {
      return turn.blocks.filter((block) => !QUIET.has(block.kind));
    },
    ending(turn) {
      if (["running", "done", "suspended", "open"].includes(turn.status)) return "";
      return turn.error ? `${turn.status}: ${turn.error}` : turn.reason && turn.reason !== turn.status ? `${turn.status} (${turn.reason})` : turn.status;
    },
  },
  template: `
    <div class="hl-console">
      <section class="hl-pane hl-talk" aria-label="Chat">
        <header class="hl-head">
          <h2>Chat <small v-if="model">{{ model }}</small></h2>
          <label class="hl-pick" v-if="list.length"><span class="hl-hidden">Conversation</span>
            <select :value="conversation" @change="ask({ do: 'open', conversation: $event.target.value })">
              <option v-if="!list.some((one) => one.id === conversation)" :value="conversation">new conversation</option>
              <option v-for="one in list" :key="one.id" :value="one.id">{{ (one.at ? clock(one.at) + ' · ' : '') + one.title.slice(0, 60) }}</option>
            </select></label>
          <button v-if="!room.readonly" type="button" @click="ask({ do: 'fresh' })">New</button>
        </header>
        <div class="hl-scroll" ref="chat" tabindex="0" role="log" aria-live="off" aria-label="Conversation">
          <p v-if="loaded && !turns.length" class="hl-empty">Nothing was said yet.
            <template v-for="text in examples" :key="text"><br><button type="button" class="hl-link" @click="draft = text; say()">{{ text }}</button></template></p>
          <template v-for="turn in turns" :key="turn.id">
            <ul :class="['hl-blocks', { 'is-long': turn.blocks.length > 60 }]"><ChatBlock v-for="block in visible(turn)" :key="block.key" :block="block" :busy="room.running || room.readonly"
              @decide="decide" @detail="ask({ do: 'detail', ...$event })"/></ul>
            <p v-if="ending(turn)" :class="['hl-ending', 'is-' + turn.status]">{{ ending(turn) }}</p>
          </template>
          <ul v-if="unread.length" class="hl-blocks"><li v-for="(text, at) in unread" :key="at" class="hl-block o-user is-unread">
            <span class="hl-who">you · the model reads this after the round</span><div class="hl-text">{{ text }}</div></li></ul>
          <p v-if="room.trouble" class="hl-error">{{ room.trouble }}</p>
          <p v-if="room.interrupted && !room.readonly" class="hl-open">This turn was interrupted.
            <button type="button" class="hl-primary" @click="ask({ do: 'go_on' })">Go on</button></p>
        </div>
        <p class="hl-hidden" aria-live="polite">{{ spoken }}</p>
        <p class="hl-notice" role="alert">{{ notice }}</p>
        <form v-if="!room.readonly" class="hl-compose" @submit.prevent="say">
          <label class="hl-hidden" for="hl-draft">Message</label>
          <textarea id="hl-draft" ref="draft" v-model="draft" rows="2" maxlength="200000" @keydown.enter="enter" @keydown.esc="room.running && ask({ do: 'cancel' })"
            :placeholder="room.running ? 'A message into the running turn' : 'A message (Enter sends, Shift+Enter breaks the line)'"></textarea>
          <button type="submit" class="hl-primary" :disabled="!loaded">Send</button>
          <button type="button" :disabled="!room.running" @click="ask({ do: 'cancel' })">Cancel</button>
        </form>
      </section>
      <section class="hl-pane hl-timeline" aria-label="Turn timeline">
        <header class="hl-head"><h2>Turn timeline</h2>
          <ul class="hl-legend" aria-label="Colours by origin">
            <li v-for="one in origins" :key="one" :class="'o-' + one">{{ one }}</li>
            <li v-for="one in plugins" :key="'p' + one" class="o-plugin" :style="hueOf(one)">{{ one }}</li>
          </ul></header>
        <div class="hl-scroll" ref="line" tabindex="0" role="group" aria-label="Rounds">
          <TurnLine v-for="(turn, at) in turns" :key="turn.id" :turn="turn" :limits="limits" :newest="at === turns.length - 1" @detail="ask({ do: 'detail', ...$event })"/>
          <p v-if="loaded && !turns.length" class="hl-empty">Rounds, tool runs and what plugins add appear here as they happen.</p>
        </div>
      </section>
      <dialog ref="dialog" class="hl-dialog" aria-label="Details" @click.self="$refs.dialog.close()" @close="shown = null">
        <template v-if="shown">
          <header class="hl-head"><h2>{{ shown.title }}</h2><button type="button" autofocus @click="$refs.dialog.close()">Close</button></header>
          <section v-for="part in shown.parts" :key="part[0]"><h3>{{ part[0] }}</h3><pre class="hl-text" tabindex="0">{{ part[1] }}</pre></section>
        </template>
      </dialog>
    </div>`,
};
