import { fromDisk, toDisk } from '@tapetree/session'

/** Line types whose payloads are also sent outside of the log, and their member in the API. */
const members = {
  submission: 'submission',
  permission_request: 'permissionRequest',
  run_start: 'runStart',
  run_end: 'runEnd',
  error: 'error',
  plan: 'plan',
  usage: 'usage',
} as const

export type PayloadType = keyof typeof members
type Payload = Record<string, unknown>

/** Converts names of a payload with the log's codec; foreign members keep their names in both directions. */
export function payloadToWire(type: PayloadType, payload: object): Payload {
  return toDisk({ type, [members[type]]: payload }, nowhere)[type] as Payload
}

export function payloadFromWire(type: PayloadType, payload: object): Payload {
  const line: object = fromDisk({ type, ...nowhere, [type]: payload }, 0)
  return (line as Payload)[members[type]] as Payload
}

const nowhere = { id: '', timestamp: '' }
