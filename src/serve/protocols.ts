/** The protocols of every server, by the names of their transports. */
export const PROTOCOLS = ['events', 'completions', 'responses', 'realtime', 'a2a', 'ag-ui', 'acp', 'omnia'] as const
