import { onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { agentSessions } from './agent-sessions.ts'

test('a session works in its own folder and with its own model', async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'agent-sessions-')))
  const model = scriptedModel(script())
  const sessions = agentSessions({ store: memoryStore(), models: onlyModel(model), hasSubagents: false })
  try {
    const chosen = { provider: model.provider, modelId: model.id }
    const live = await sessions.get(await sessions.create({ cwd: folder, model: chosen }))
    expect(live.board.get('config')).toMatchObject({ model: { provider: model.provider, model_id: model.id } })
    const ack = await live.perform('1', 'me', { op: 'bash', args: { command: 'pwd' } })
    expect(ack).toMatchObject({ ok: true, result: { exit_code: 0 } })
    const lines: string[] = []
    for await (const line of live.session.lines({ after: 0 })) lines.push('text' in line ? line.text : '')
    expect(lines.some((line) => line.includes('model_change'))).toBe(true)
    expect(
      lines.filter((line) => line.includes(`${folder}\\n`) || line.includes(`"${folder}"`)).length,
    ).toBeGreaterThan(1)
    await expect(sessions.get('no-such-session')).rejects.toMatchObject({ code: 'session-not-found' })
  } finally {
    await sessions.close()
    await rm(folder, { recursive: true, force: true })
  }
})
