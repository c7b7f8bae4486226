// @ts-check

/** @typedef {import('../lib/measure.js').Load & { name: string }} Scenario */

/**
 * Responses of 500 deltas: `burst` from a generator that never waits, `paced` from one that yields every millisecond.
 *
 * @param {{ quick: boolean }} options
 * @returns {Scenario[]}
 */
export function throughput({ quick }) {
  return [...events({ quick }), ...openAi({ quick }), ...interactive({ quick })]
}

/** @param {{ quick: boolean }} options @returns {Scenario[]} */
function events({ quick }) {
  return /** @type {const} */ (['ws', 'sse']).flatMap((transport) =>
    quick
      ? [
          { name: `${transport} burst 50`, transport, clients: 50, responses: 2, ms: 0, rounds: 1, warm: 2 },
          { name: `${transport} paced 20`, transport, clients: 20, responses: 1, ms: 1, rounds: 1, warm: 1 },
        ]
      : [
          { name: `${transport} burst 10`, transport, clients: 10, responses: 40, ms: 0, rounds: 5, naiveRounds: 2, warm: 40 },
          { name: `${transport} burst 50`, transport, clients: 50, responses: 8, ms: 0, rounds: 7, naiveRounds: 2, warm: 12 },
          { name: `${transport} burst 2000`, transport, clients: 2000, responses: 1, ms: 0, rounds: 3, naiveRounds: 1, warm: 1 },
          { name: `${transport} paced 20`, transport, clients: 20, responses: 2, ms: 1, rounds: 3, warm: 1 },
          { name: `${transport} paced 200`, transport, clients: 200, responses: 1, ms: 1, rounds: 3, warm: 1 },
        ],
  )
}

/** `once`: not streamed, one word; what is counted as an event there is a request. @param {{ quick: boolean }} options @returns {Scenario[]} */
function openAi({ quick }) {
  const load = quick ? { responses: 2, rounds: 1, warm: 2 } : { responses: 25, rounds: 7, naiveRounds: 2, warm: 40 }
  // Rounds of seconds: in a fifth of one the collector has no turn, and the table is kind to whoever leaves it the most to do.
  const requests = quick ? { responses: 20, rounds: 1, warm: 20 } : { responses: 1200, rounds: 5, naiveRounds: 2, warm: 600 }
  return [
    { name: 'completions burst 16', transport: 'completions', clients: 16, ms: 0, ...load },
    { name: 'completions once 16', transport: 'completions-once', clients: 16, ms: 0, deltas: 1, ...requests },
    {
      name: 'completions paced 20',
      transport: 'completions',
      clients: 20,
      ms: 1,
      responses: quick ? 1 : 2,
      rounds: quick ? 1 : 3,
      warm: 1,
    },
    // What was said before comes with every request: 16 KiB, and as many as a long conversation has.
    { name: 'completions 16k 16', transport: 'completions-16k', clients: 16, ms: 0, deltas: 1, ...few(requests, 2) },
    { name: 'completions 100k tokens 8', transport: 'completions-100k-tokens', clients: 8, ms: 0, deltas: 1, ...few(requests, 24) },
    { name: 'responses burst 16', transport: 'responses', clients: 16, ms: 0, ...load },
  ]
}

/** @template {{ responses: number, warm: number }} T @param {T} load @param {number} part */
const few = (load, part) => ({ ...load, responses: Math.ceil(load.responses / part), warm: Math.ceil(load.warm / part) })

/** What front ends, editors and dashboards speak: a stream for each run, and sockets. @param {{ quick: boolean }} options @returns {Scenario[]} */
function interactive({ quick }) {
  const load = quick ? { responses: 2, rounds: 1, warm: 2 } : { responses: 25, rounds: 7, naiveRounds: 2, warm: 40 }
  return /** @type {const} */ (['ag-ui', 'acp', 'omnia']).map((transport) => ({
    name: `${transport} burst 16`,
    transport,
    clients: 16,
    ms: 0,
    ...load,
  }))
}
