// What the server told, as reactive data. `apply` takes operations in their order; nothing is decided here.

export class Board {
  constructor(turns) {
    this.turns = turns; // a reactive array
    this.reset([]);
  }

  reset(list) {
    this.turns.splice(0, this.turns.length);
    this.byTurn = new Map();
    this.byKey = new Map();
    for (const turn of list) {
      const { rounds, blocks, ...head } = turn;
      this.turn(head);
      rounds.forEach((round) => this.round(round));
      blocks.forEach((block) => this.block(block));
    }
  }

  apply(op) {
    if (op.op === "text") {
      const block = this.byKey.get(op.turn + "\n" + op.key);
      if (block) block.text += op.text;
    } else if (op.op in { turn: 1, round: 1, block: 1 }) {
      this[op.op](op[op.op]);
    }
  }

  turn(head) {
    const known = this.byTurn.get(head.id);
    if (known) Object.assign(known, head);
    else {
      this.turns.push({ ...head, rounds: [], blocks: [] });
      this.byTurn.set(head.id, this.turns[this.turns.length - 1]);
    }
  }

  round(round) {
    this.put(this.byTurn.get(round.turn)?.rounds, "round " + round.n, round);
  }

  block(block) {
    this.put(this.byTurn.get(block.turn)?.blocks, block.key, block);
  }

  put(list, name, value) {
    if (!list) return;
    const key = value.turn + "\n" + name;
    const known = this.byKey.get(key);
    if (known) Object.assign(known, value);
    else {
      list.push(value);
      this.byKey.set(key, list[list.length - 1]); // the reactive one
    }
  }
}
