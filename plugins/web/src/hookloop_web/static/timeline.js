// The turn timeline: rounds in order, each message coloured by its origin, durations as bars, limits as gauges, plots.
import { STATES, cachedShare, many, paint, seconds, tokens, who } from "hookloop-web/words.js";

const longest = (rounds) => Math.max(0.001, ...rounds.map((round) => Math.max(round.seconds || 0, round.tools || 0)));

const Bar = {
  props: { value: Number, most: Number },
  template: `<span class="hl-bar" aria-hidden="true"><span :style="{ width: Math.max(1, 100 * value / most) + '%' }"></span></span>`,
};

const Row = {
  components: { Bar },
  props: { block: Object, most: Number },
  emits: ["detail"],
  computed: {
    style() { return paint(this.block); },
    name() { return who(this.block); },
    line() {
      const block = this.block;
      if (block.kind !== "call") return block.text.slice(0, 200);
      return `${block.args.slice(0, 100)} → ${block.text.slice(0, 100) || STATES[block.state]}`;
    },
  },
  methods: { seconds },
  template: `
    <li :class="['hl-row', 'o-' + block.origin, 'k-' + block.kind, 's-' + (block.state || 'plain')]" :style="style">
      <button type="button" @click="$emit('detail', { turn: block.turn, what: block.key })">
        <span class="hl-who">{{ name }}</span><span class="hl-kind" v-if="block.kind !== 'message' && block.kind !== 'call' && block.kind !== 'reply' && block.kind !== 'thinking'">{{ block.kind.replaceAll('_', ' ') }}</span>
        <span class="hl-line">{{ line }}</span>
        <span class="hl-time" v-if="block.seconds">{{ seconds(block.seconds) }}</span>
        <Bar v-if="block.seconds" :value="block.seconds" :most="most"/>
      </button>
    </li>`,
};

const Round = {
  components: { Bar, Row },
  props: { round: Object, blocks: Array, most: Number },
  emits: ["detail"],
  computed: {
    usage() { return tokens(this.round.usage); },
    size() { return `${many(this.round.size || 0, "message")} sent` + (this.round.fresh ? `, ${this.round.fresh} new` : ""); },
  },
  methods: { seconds },
  template: `
    <li class="hl-round">
      <button type="button" class="hl-round-head" @click="$emit('detail', { turn: round.turn, what: round.n })">
        <span class="hl-round-name">Round {{ round.n }}</span>
        <span>{{ size }}</span>
        <span v-if="usage">{{ usage }}</span>
        <span v-if="round.attempt > 1">attempt {{ round.attempt }}</span>
        <span v-if="round.by">answered by {{ round.by }}</span>
        <span class="hl-time">{{ round.state === 'answered' ? seconds(round.seconds) : round.state === 'failed' ? 'failed' : '…' }}</span>
        <Bar v-if="round.seconds" :value="round.seconds" :most="most"/>
      </button>
      <ul><Row v-for="block in blocks" :key="block.key" :block="block" :most="most" @detail="$emit('detail', $event)"/></ul>
    </li>`,
};

const Plot = {
  props: { title: String, bars: Array, words: String },
  computed: {
    most() { return Math.max(0.000001, ...this.bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0))); },
    columns() {
      const width = 300 / Math.max(8, this.bars.length);
      return this.bars.map((bar, at) => {
        let top = 60;
        const parts = bar.parts.map((part) => {
          const height = (56 * part.value) / this.most;
          top -= height;
          return { kind: part.kind, y: top, height };
        });
        return { x: at * width, width: Math.max(1, width - Math.min(3, width / 4)), parts, says: bar.says };
      });
    },
  },
  template: `
    <figure class="hl-plot"><figcaption>{{ title }} <span>{{ words }}</span></figcaption>
      <svg viewBox="0 0 300 60" preserveAspectRatio="none" role="img" :aria-label="title + ': ' + words">
        <g v-for="(column, at) in columns" :key="at"><title>{{ column.says }}</title>
          <rect v-for="part in column.parts" :key="part.kind" :class="'p-' + part.kind" :x="column.x" :width="column.width" :y="part.y" :height="part.height"/>
        </g>
      </svg>
    </figure>`,
};

export const Gauges = {
  props: { turn: Object, limits: Object },
  computed: {
    list() {
      const used = { rounds: this.turn.used_rounds, calls: this.turn.used_calls, tokens: this.turn.tokens, cost: this.turn.cost };
      if (this.limits.seconds != null) used.seconds = this.turn.rounds.reduce((sum, round) => sum + (round.seconds || 0) + (round.tools || 0), 0);
      return Object.entries(used).filter(([name, value]) => value != null || this.limits[name] != null).map(([name, value]) => {
        const most = this.limits[name];
        return { name, value: value || 0, most, share: most ? Math.min(1, (value || 0) / most) : 0 };
      });
    },
  },
  methods: { show: (value) => (Number.isInteger(value) ? value.toLocaleString("en") : value.toFixed(4)) },
  template: `
    <dl class="hl-gauges" aria-label="Limits">
      <div v-for="one in list" :key="one.name" :class="{ full: one.share >= 1, near: one.share >= 0.8 }">
        <dt>{{ one.name }}</dt><dd>{{ show(one.value) }}<template v-if="one.most != null"> / {{ show(one.most) }}</template></dd>
        <meter v-if="one.most != null" min="0" :max="one.most" :value="Math.min(one.value, one.most)" :aria-label="one.name + ' used'"></meter>
      </div>
    </dl>`,
};

export const Plots = {
  components: { Plot },
  props: { rounds: Array },
  computed: {
    time() {
      return this.rounds.map((round) => ({
        says: `round ${round.n}: model ${seconds(round.seconds || 0)}, tools ${seconds(round.tools || 0)}`,
        parts: [{ kind: "model", value: round.seconds || 0 }, { kind: "tool", value: round.tools || 0 }],
      }));
    },
    used() {
      return this.rounds.map((round) => {
        const usage = round.usage || {};
        const out = usage.output || 0;
        const read = Math.max(0, (usage.total ?? (usage.input || 0) + out) - out);
        const cached = Math.round(read * cachedShare(usage));
        return {
          says: `round ${round.n}: ${tokens(usage) || "no tokens reported"}`,
          parts: [{ kind: "cached", value: cached }, { kind: "input", value: read - cached }, { kind: "output", value: out }],
        };
      });
    },
    timeWords() { return seconds(this.rounds.reduce((sum, round) => sum + (round.seconds || 0) + (round.tools || 0), 0)); },
    usedWords() {
      const sum = this.rounds.reduce((total, round) => total + (round.usage?.total || 0), 0);
      return sum ? sum.toLocaleString("en") : "none reported";
    },
  },
  template: `<div class="hl-plots">
    <Plot title="Time per round" :bars="time" :words="timeWords"/><Plot title="Tokens per round" :bars="used" :words="usedWords"/>
  </div>`,
};

export const TurnLine = {
  components: { Gauges, Plots, Round, Row },
  props: { turn: Object, limits: Object, newest: Boolean },
  emits: ["detail"],
  data() { return { asked: null }; },
  computed: {
    open() { return this.asked ?? this.newest; },
    most() { return longest(this.turn.rounds); },
    before() { return this.turn.blocks.filter((block) => !block.round); },
    groups() {
      const groups = new Map(this.turn.rounds.map((round) => [round.n, []]));
      for (const block of this.turn.blocks) groups.get(block.round)?.push(block);
      return groups;
    },
    question() { return this.turn.blocks.find((block) => block.origin === "user")?.text.slice(0, 80) || ""; },
  },
  template: `
    <section class="hl-turn" :aria-label="'Turn ' + turn.number">
      <h3><button type="button" :aria-expanded="open" @click="asked = !open">
        <span class="hl-turn-name">Turn {{ turn.number }}</span>
        <span :class="['hl-status', 'is-' + turn.status]">{{ turn.status }}<template v-if="turn.reason && turn.reason !== 'end' && turn.reason !== turn.status"> ({{ turn.reason }})</template></span>
        <span class="hl-line">{{ question }}</span></button></h3>
      <template v-if="open">
        <p v-if="turn.error" class="hl-error">{{ turn.error }}</p>
        <Gauges :turn="turn" :limits="limits"/>
        <Plots v-if="turn.rounds.length" :rounds="turn.rounds"/>
        <ul v-if="before.length" class="hl-before"><Row v-for="block in before" :key="block.key" :block="block" :most="most" @detail="$emit('detail', $event)"/></ul>
        <ol :class="['hl-rounds', { 'is-long': turn.rounds.length > 20 }]"><Round v-for="round in turn.rounds" :key="round.n" :round="round" :blocks="groups.get(round.n)" :most="most" @detail="$emit('detail', $event)"/></ol>
      </template>
    </section>`,
};
