// The two columns. What changed is said to screen readers, and shown for a moment.
export default {
  data() {
    return { tickets: [], loaded: false, said: "", notice: "", fresh: [] };
  },
  mounted() {
    this.$emit("ask", { do: "show" });
  },
  computed: {
    columns() {
      return [
        { title: "Available", status: "free", act: "Book", none: "No ticket is free." },
        { title: "Booked", status: "booked", act: "Cancel", none: "Nothing is booked." },
      ].map((column) => ({ ...column, tickets: this.tickets.filter((ticket) => ticket.status === column.status) }));
    },
  },
  methods: {
    show(tickets) {
      const before = new Map(this.tickets.map((ticket) => [ticket.id, ticket.status]));
      const changed = this.loaded ? tickets.filter((ticket) => before.get(ticket.id) !== ticket.status) : [];
      if (changed.length) {
        this.said = changed.map((ticket) => `${ticket.route} is now ${ticket.status}.`).join(" ");
        this.fresh = changed.map((ticket) => ticket.id);
        this.notice = "";
      }
      this.tickets = tickets;
      this.loaded = true;
    },
    tell(text) {
      this.notice = text;
    },
    act(column, ticket) {
      this.notice = "";
      this.$emit("ask", { do: column.act.toLowerCase(), id: ticket.id });
    },
  },
  template: `
    <section class="bk-board hl-pane" aria-label="Tickets">
      <div class="bk-columns">
        <section v-for="column in columns" :key="column.status" :class="'bk-' + column.status" :aria-label="column.title">
          <h2>{{ column.title }} <span>{{ column.tickets.length }}</span></h2>
          <ul><li v-for="ticket in column.tickets" :key="ticket.id" :class="{ fresh: fresh.includes(ticket.id) }">
            <span class="bk-route">{{ ticket.route }}</span>
            <button type="button" @click="act(column, ticket)" :aria-label="column.act + ' ' + ticket.route">{{ column.act }}</button></li></ul>
          <p v-if="loaded && !column.tickets.length" class="hl-empty">{{ column.none }}</p>
        </section>
      </div>
      <p class="hl-notice" role="alert">{{ notice }}</p>
      <p class="hl-hidden" aria-live="polite">{{ said }}</p>
    </section>`,
};
