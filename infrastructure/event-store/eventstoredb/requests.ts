import shared from '@eventstore/db-client/generated/shared_pb.js'
import streams, { type ReadReq } from '@eventstore/db-client/generated/streams_pb.js'

const { Options } = streams.ReadReq
const FORWARDS = 0
const BACKWARDS = 1
/** Events that a filtered read looks at in one go, and such goes between two checkpoints. */
const SEARCH_WINDOW = 1_000
const CHECKPOINT_WINDOWS = 10

/** Where reading of the whole log begins; the server knows the positions of events only, no others between them. */
export type LogPlace = 'start' | 'end' | bigint

/** Reads the whole log or follows it; system events are left out. */
export function logRequest(options: {
  readonly from: LogPlace
  /** Events at the most; `follow` subscribes. */
  readonly count: number | 'follow'
  readonly backwards?: boolean
  readonly types?: readonly string[] | undefined
}): ReadReq {
  const all = new Options.AllOptions()
  if (options.from === 'start') all.setStart(new shared.Empty())
  else if (options.from === 'end') all.setEnd(new shared.Empty())
  else {
    const position = new Options.Position()
    position.setCommitPosition(String(options.from))
    position.setPreparePosition(String(options.from))
    all.setPosition(position)
  }
  const wanted = new Options.FilterOptions.Expression()
  const filter = new Options.FilterOptions()
  if (options.types) {
    wanted.setRegex(anyOf(options.types))
    filter.setEventType(wanted)
  } else {
    // by stream: the server's settings are events of a type like any other
    wanted.setRegex('^[^\\$]')
    filter.setStreamIdentifier(wanted)
  }
  filter.setMax(SEARCH_WINDOW)
  filter.setCheckpointintervalmultiplier(CHECKPOINT_WINDOWS)
  const read = readOptions(options.backwards ?? false)
  read.setAll(all)
  read.setFilter(filter)
  if (options.count === 'follow') read.setSubscription(new Options.SubscriptionOptions())
  else read.setCount(String(options.count))
  return request(read)
}

/** Reads a stream. @param options.from revision, or where backwards reading begins. */
export function streamRequest(options: {
  readonly stream: string
  readonly from: number | 'end'
  readonly count: number
  readonly backwards: boolean
}): ReadReq {
  const stream = new Options.StreamOptions()
  const name = new shared.StreamIdentifier()
  name.setStreamName(new Uint8Array(Buffer.from(options.stream)))
  stream.setStreamIdentifier(name)
  if (options.from === 'end') stream.setEnd(new shared.Empty())
  else stream.setRevision(String(options.from))
  const read = readOptions(options.backwards)
  read.setStream(stream)
  read.setNoFilter(new shared.Empty())
  read.setCount(String(options.count))
  return request(read)
}

function readOptions(backwards: boolean): ReadReq.Options {
  const ids = new Options.UUIDOption()
  ids.setString(new shared.Empty())
  const options = new Options()
  options.setUuidOption(ids)
  options.setResolveLinks(false)
  options.setReadDirection(backwards ? BACKWARDS : FORWARDS)
  return options
}

function request(options: ReadReq.Options): ReadReq {
  const whole = new streams.ReadReq()
  whole.setOptions(options)
  return whole
}

/** A regular expression of the server's that matches exactly these texts. */
function anyOf(texts: readonly string[]): string {
  return `^(?:${texts.map((text) => text.replace(/[\\^$.*+?()[\]{}|#\s-]/g, '\\$&')).join('|')})$`
}
