import type { ModelFacts, Price } from '../../core/ports/models.ts'

/** `$1.25 in, $0.125 cached, $10 out for a million tokens`. */
export function priceText({ input, output, cacheRead }: Price): string {
  const cached = cacheRead === undefined ? '' : ` $${cacheRead} cached,`
  return `$${input} in,${cached} $${output} out for a million tokens`
}

/** `400,000 tokens, answers of up to 128,000`; empty if neither is known. */
export function limitsText({ contextWindow, maxOutput }: Pick<ModelFacts, 'contextWindow' | 'maxOutput'>): string {
  const answer = maxOutput === undefined ? '' : `answers of up to ${count(maxOutput)}`
  if (contextWindow === undefined) return answer === '' ? '' : `${answer} tokens`
  return `${count(contextWindow)} tokens${answer === '' ? '' : `, ${answer}`}`
}

export function count(tokens: number): string {
  return Math.round(tokens).toLocaleString('en')
}
