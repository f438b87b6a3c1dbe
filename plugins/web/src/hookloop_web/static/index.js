// The parts of the page, for pages that are made of them.
export { Approval, ChatBlock } from "hookloop-web/block.js";
export { Board } from "hookloop-web/board.js";
export { Gauges, Plots, TurnLine } from "hookloop-web/timeline.js";
