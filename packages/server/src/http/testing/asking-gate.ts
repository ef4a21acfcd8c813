import type { Gate } from '@tapetree/agent'
import type { Requests } from '@tapetree/agent/permissions'
import type { PermissionOption } from '@tapetree/session/format'

const options: PermissionOption[] = [
  { optionId: 'yes', label: 'Yes', kind: 'allow_once' },
  { optionId: 'no', label: 'No', kind: 'reject_once' },
]

/** Asks about every call. */
export function askingGate(requests: Requests): Gate {
  return {
    admit: async ({ runId, callId, tool, input }, signal) => {
      const { outcome } = await requests.ask({ runId, callId, tool, title: `Use ${tool}?`, input, options }, signal)
      return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'The user said no.' }
    },
  }
}
