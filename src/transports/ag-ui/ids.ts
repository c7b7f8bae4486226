/** The id of a message in an answer. It contains the response's id, so that a message which a client sends back is recognized. */
export function idIn(response: string, place: string | number): string {
  return `${response}.${place}`
}

/** The response that a message belongs to; undefined for ids that are not ours. */
export function responseOf(id: string): string | undefined {
  return /^(resp_[^.]+)\.[\w.]+$/.exec(id)?.[1]
}

/** Part of the ids of a response's events, because their numbers alone also occur in other threads. */
export function markOf(response: string): string {
  return response.replaceAll(/\W/g, '').slice(-6)
}

/** The id of the interrupt that asks for payment, which has no id of its own. */
export function paymentId(response: string): string {
  return idIn(response, 'payment')
}
