import type { ToolContext, ToolOutput } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { RemoteWorkspace } from '@tapetree/agent/tool-host'
import { newId } from '@tapetree/session'

/** Runs a command on a host, as a session does whose gate allows everything. */
export function runRemotely(
  remote: RemoteWorkspace,
  command: string,
  { background = false, sessionId = newId() }: { background?: boolean; sessionId?: string } = {},
): { output: Promise<ToolOutput>; observed: string[] } {
  const { folder: cwd } = remote.reference
  const checked = remote
    .tools()
    .find(({ name }) => name === 'bash')
    ?.check({ command, background }, { cwd })
  if (typeof checked !== 'object') throw new Error(checked ?? 'The host offers no bash.')
  const observed: string[] = []
  const notNeeded = (): never => {
    throw new Error('A command needs no blobs.')
  }
  const context: ToolContext = {
    sessionId,
    runId: newId(),
    callId: 'call-1',
    cwd,
    signal: new AbortController().signal,
    clock: systemClock,
    localFolder: undefined,
    append: async () => undefined,
    putBlob: notNeeded,
    getBlob: notNeeded,
    observe: (text) => void observed.push(text),
    ask: async () => ({ text: '', isCancelled: true }),
    reach: async () => undefined,
    readmit: async () => ({ type: 'allowed' }),
  }
  return { output: checked.run(context), observed }
}
