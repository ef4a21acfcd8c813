import { setTimeout as wait } from 'node:timers/promises'
import { SessionStore } from '@tapetree/session'
import { MemoryLogStore } from '@tapetree/session/log-store'
import { changedPort } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { allowAll } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { onlyModel } from './model-choice.ts'

/** A store that takes a moment for every call, as a database does, and the calls that a run waited for. */
function distantStore(): { store: SessionStore; calls: string[] } {
  const calls: string[] = []
  const distant = async <T>(name: string, call: () => T | Promise<T>): Promise<T> => {
    calls.push(name)
    await wait(1)
    return call()
  }
  const typeOf = ({ text }: { text: string }): string => (JSON.parse(text) as { type: string }).type
  const port = changedPort(new MemoryLogStore(), {
    log: (log) => ({
      append: (lines, options) => distant(lines.map(typeOf).join(' '), () => log.append(lines, options)),
      readAt: (positions) => distant(`read ${positions.length}`, () => log.readAt(positions)),
      lines: (from) => (calls.push('lines'), log.lines(from)),
      getBlob: (sha256) => distant('blob', () => log.getBlob(sha256)),
    }),
  })
  return { store: new SessionStore(port, {}), calls }
}

test('a turn waits for the store three times, and a turn with a call for its start, its result and the answer', async () => {
  const steps = script().text('a').step().text('b').step().toolCall('c', 'act').toolResult('c', 'done').step().text('d')
  const model = scriptedModel(steps)
  const { store, calls } = distantStore()
  const session = await store.create({ name: 'named already, which is a line less' })
  const sessionId = session.id
  await session.close()
  await using agent = await AgentSession.open({
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    systemPrompt: () => 'You are a test.',
    gate: () => allowAll,
    hasSubagents: false,
    store,
    sessionId,
  })
  const callsOf = async (words: string): Promise<string[]> => {
    calls.length = 0
    const outcome = await agent.prompt(words)
    if (outcome.type === 'started') await outcome.run.done
    return [...calls]
  }
  expect(await callsOf('one')).toEqual(['writer model_change system message run_start', 'message', 'run_end'])
  expect(await callsOf('two')).toEqual(['message run_start', 'message', 'run_end'])
  expect(await callsOf('three')).toEqual([
    'message run_start',
    'message',
    'tool_start',
    'message',
    'message',
    'run_end',
  ])
})
