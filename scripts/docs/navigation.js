// @ts-check

/** The groups of pages, in the order in which they are shown. A page of `docs/` that no group names is a guide. @type {Readonly<Record<string, readonly string[]>>} */
const GROUPS = {
  Tutorial: ['docs/tutorial/'],
  Guides: [
    'docs/concepts.md',
    'docs/agents.md',
    'docs/models.md',
    'docs/tools.md',
    'docs/testing.md',
    'docs/chat.md',
    'docs/client.md',
    'docs/wallets.md',
    'docs/config.md',
    'docs/mounting.md',
    'docs/connect.md',
    'docs/recipes.md',
    'docs/comparison.md',
    'docs/glossary.md',
    'docs/architecture.md',
  ],
  Protocols: [
    'docs/events.md',
    'docs/openai.md',
    'docs/a2a.md',
    'docs/acp.md',
    'docs/ag-ui.md',
    'docs/omnia.md',
    'docs/mapping.md',
    'docs/matrix.md',
  ],
  Operations: [
    'docs/server.md',
    'docs/tls.md',
    'docs/identity.md',
    'docs/payments.md',
    'docs/prices.md',
    'docs/payments-rest.md',
    'docs/operations.md',
    'docs/deployment.md',
    'docs/security.md',
    'docs/troubleshooting.md',
  ],
  Decisions: ['docs/decisions/'],
}

/** @typedef {{ name: string, pages: string[] }} Group */

/** @param {readonly string[]} documents paths of all Markdown files in `docs/` @returns {Group[]} */
export function navigation(documents) {
  const known = Object.entries(GROUPS).map(([name, patterns]) => ({
    name,
    pages: patterns.flatMap((pattern) => documents.filter((path) => (pattern.endsWith('/') ? path.startsWith(pattern) : path === pattern))),
  }))
  const named = new Set(['docs/README.md', ...known.flatMap(({ pages }) => pages)])
  const rest = documents.filter((path) => !named.has(path))
  return known.map(({ name, pages }) => ({ name, pages: name === 'Guides' ? [...pages, ...rest] : pages }))
}
