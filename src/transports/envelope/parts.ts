import type { Host } from '../../core/ports/transport.ts'
import { Admission } from './admission.ts'
import { Capabilities } from './capabilities.ts'
import { Closings } from './closing.ts'
import { Discovery } from './discovery.ts'
import { Inbox } from './inbox.ts'
import { OwnDid } from './own-did.ts'
import { Proposals } from './proposals.ts'
import { MessageRecords } from './records.ts'
import { Replies } from './replies.ts'
import { SenderKeys } from './sender-keys.ts'
import type { EnvelopeOptions, EnvelopeSettings } from './settings.ts'
import { Streams } from './streams.ts'
import { Windows } from './windows.ts'

/** What all bindings share. */
export interface Parts {
  readonly host: Host
  readonly settings: EnvelopeSettings
  readonly discovery: Discovery
  readonly admission: Admission
  readonly inbox: Inbox
  readonly streams: Streams
  readonly replies: Replies
  readonly closings: Closings
}

export function partsOf(host: Host, { senders = {}, keys: pinned = {}, anchors = [] }: EnvelopeOptions, settings: EnvelopeSettings): Parts {
  const own = new OwnDid(host)
  const keys = new SenderKeys({ host, own, pinned, insecureDev: settings.insecureDev })
  const capabilities = new Capabilities({ own, keys, anchors, now: host.now })
  const records = new MessageRecords(host.store, settings)
  const shared = { host, records, windows: new Windows(), proposals: new Proposals() }
  const streams = new Streams(shared)
  const replies = new Replies({ host, own })
  return {
    host,
    settings,
    discovery: new Discovery({ host, own, anchors, settings }),
    admission: new Admission({ host, own, keys, capabilities, senders, settings }),
    inbox: new Inbox({ ...shared, settings }),
    streams,
    replies,
    closings: new Closings({ host, records, streams, replies, settings }),
  }
}
