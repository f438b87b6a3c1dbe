// One block of the chat: a message, a reply, a call with its result, an approval. All text is text, never HTML.
import { STATES, many, paint, seconds, who } from "hookloop-web/words.js";

export const Approval = {
  props: { block: Object, busy: Boolean },
  emits: ["decide"],
  data() {
    return { args: this.block.args, reason: "" };
  },
  methods: {
    decide(verdict) {
      this.$emit("decide", { call: this.block.call, verdict, reason: this.reason, arguments: this.args });
    },
  },
  template: `
    <form class="hl-approval" @submit.prevent="decide('approve')" :aria-label="'Decide on ' + block.name">
      <p class="hl-question">{{ block.question || 'May this run?' }}</p>
      <label>Arguments
        <textarea v-model="args" rows="2" spellcheck="false" class="hl-mono"></textarea></label>
      <label>Reason, if denied
        <input v-model="reason" type="text" autocomplete="off"></label>
      <div class="hl-buttons">
        <button type="submit" class="hl-primary" :disabled="busy">Approve</button>
        <button type="button" :disabled="busy" @click="decide('deny')">Deny</button>
      </div>
    </form>`,
};

export const ChatBlock = {
  components: { Approval },
  props: { block: Object, busy: Boolean },
  emits: ["decide", "detail"],
  computed: {
    style() { return paint(this.block); },
    name() { return who(this.block); },
    state() { return STATES[this.block.state] ?? this.block.state; },
    more() { return this.block.more ? `${many(this.block.more, "more character")} — show all` : ""; },
  },
  methods: {
    seconds,
    detail() { this.$emit("detail", { turn: this.block.turn, what: this.block.key }); },
  },
  template: `
    <li :class="['hl-block', 'k-' + block.kind, 'o-' + block.origin, 's-' + (block.state || 'plain')]" :style="style">
      <template v-if="block.kind === 'call'">
        <div class="hl-call">
          <span class="hl-who">{{ block.name }}</span>
          <code class="hl-args">{{ block.args }}</code>
          <span class="hl-state">{{ block.state === 'done' && !block.ran ? 'not run' : state }}<template v-if="block.seconds"> · {{ seconds(block.seconds) }}</template></span>
        </div>
        <Approval v-if="block.state === 'asked'" :block="block" :busy="busy" @decide="$emit('decide', $event)"/>
        <details v-if="block.text" :open="block.state === 'error'">
          <summary>result</summary><pre class="hl-text">{{ block.text }}</pre>
        </details>
      </template>
      <details v-else-if="block.kind === 'thinking'">
        <summary>thinking {{ state }}</summary><div class="hl-text">{{ block.text }}</div>
      </details>
      <template v-else>
        <span class="hl-who">{{ name }}<template v-if="block.state && state"> · {{ state }}</template></span>
        <div class="hl-text">{{ block.text }}</div>
      </template>
      <button v-if="more" type="button" class="hl-link" @click="detail">{{ more }}</button>
    </li>`,
};
