import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { openCodingAgent } from '@tapetree/agent'
import { answeringFetch } from './answering-fetch.ts'

/**
 * A session of a repository that is still harmless, as a process leaves it that died in the middle of a run: one call had started,
 * and two are left that nobody has allowed. Returns its id.
 */
export async function interruptedSession(place: {
  cwd: string
  home: string
  sessions: string
  endpoint: string
}): Promise<string> {
  const { cwd, home, sessions, endpoint } = place
  const store = openFileStore({ folder: sessions })
  const fetch = answeringFetch([])
  const agent = await openCodingAgent({ store, cwd, home, env: {}, fetch })
  const outcome = await agent.session.prompt('Hello')
  if (outcome.type === 'started') await outcome.run.done
  const { session } = agent.session
  const runId = 'the-run'
  const leafId = await session.appendMessage('user', [text('Go on.')])
  await session.append({ type: 'run_start', runStart: { runId, leafId } })
  const calls = [
    { id: 'started', name: 'write', input: { path: 'written', content: 'x' } },
    { id: 'command', name: 'bash', input: { command: 'touch ../canary' } },
    { id: 'address', name: 'fetch', input: { url: endpoint } },
  ]
  const content = calls.map((toolUse) => ({ type: 'tool_use' as const, toolUse }))
  await session.appendMessage('assistant', content, { with: { runId } })
  await session.append({ type: 'tool_start', toolStart: { runId, callId: 'started', name: 'write' } })
  await agent.close()
  await store.close()
  return session.id
}
