import { fromDisk, toDisk } from '@tapetree/session'

/** Lines whose payloads travel outside of the log, and the member that the API has them in. */
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

/** A payload as it is named in the log, by the codec of the log: what is not ours keeps its names, both ways. */
export function payloadToWire(type: PayloadType, payload: object): Payload {
  return toDisk({ type, [members[type]]: payload }, nowhere)[type] as Payload
}

export function payloadFromWire(type: PayloadType, payload: object): Payload {
  const line: object = fromDisk({ type, ...nowhere, [type]: payload }, 0)
  return (line as Payload)[members[type]] as Payload
}

const nowhere = { id: '', timestamp: '' }
