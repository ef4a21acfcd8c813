import type { SessionSummary } from '@tapetree/client'

/** `kind` is the CSS class. */
export interface DescribedStatus {
  kind: 'needs-you' | 'failed' | 'running' | 'idle'
  label: string
  reason?: string
}

type GivenStatus = Pick<SessionSummary, 'status' | 'stopped' | 'failed'>

export function describeStatus({ status, stopped, failed }: GivenStatus): DescribedStatus {
  if (status === 'requires_action') return { kind: 'needs-you', label: 'Needs you' }
  if (stopped)
    return {
      kind: 'failed',
      label: stopped.type === 'interrupted' ? 'Interrupted' : 'Failed',
      reason: stopped.reason,
    }
  if (status === 'running') return { kind: 'running', label: 'Running' }
  if (failed) return { kind: 'failed', label: 'Failed', reason: failed.reason }
  return { kind: 'idle', label: status === 'ended' ? 'Ended' : 'Idle' }
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** `now` is in milliseconds since the epoch. */
export function timeAgo(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000)
  const [unit, length] = units.find(([, each]) => seconds >= each) ?? []
  return unit === undefined ? 'just now' : relative.format(-Math.floor(seconds / (length ?? 1)), unit)
}

export function titleOf({ name, firstText }: Pick<SessionSummary, 'name' | 'firstText'>): string {
  return name || firstText || 'Untitled session'
}

/** The end of a path, which tells folders apart. */
export function shortPath(path: string): string {
  const parts = path.split(/[/\\]/).filter((part) => part !== '')
  return parts.length > 2 ? `…/${parts.slice(-2).join('/')}` : path
}
