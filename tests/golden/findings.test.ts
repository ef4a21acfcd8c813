import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Model } from '@tapetree/agent'
import { bashTool, Jobs } from '@tapetree/agent/tools'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { openaiCompatible } from '@tapetree/agent/models/openai-compatible'
import { script, TestAgent, type ScriptedModel } from '@tapetree/agent/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  startFakeProvider,
  type FakeProvider,
  type FakeStep,
} from '../../packages/agent/src/testing/fake-provider/index.ts'
import { storedIn, type Stored } from '../support/stored.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { steadyRetry } from './scenarios/model-failures.ts'
import { isResult, Stage } from './stage.ts'
import { tool } from './tool.ts'

function newStage(): Stage {
  const stage = new Stage(temporaryFolder())
  onTestFinished(() => stage.clear())
  return stage
}

describe('a kill', () => {
  test('in the middle of an answer keeps what was said as an attempt, and the same request is sent again', async () => {
    const stage = newStage()
    const answer = script()
      .text('I have looked at ', 'the first')
      .do(() => stage.untilDrafted('the first'))
      .do(() => stage.die())
    const agent = await stage.open({ script: answer })
    await stage.crash(agent.prompt('Look at both files.'))
    await stage.resume({ script: script().text('I have looked at both.') })

    expect(await recordsOf(stage, 'attempt')).toMatchObject([
      { content: [{ text: { content: 'I have looked at the first' } }], error: { kind: 'interrupted' } },
    ])
    expect(await stage.agent.path()).toEqual(['user: Look at both files.', 'assistant: I have looked at both.'])
    expect(requestsOf(stage.agent)).toEqual(requestsOf(agent))
  })

  test('with messages waiting delivers each of them once and in order', async () => {
    const stage = newStage()
    const submit = async (): Promise<void> => {
      for (const words of ['second', 'third']) await stage.session.submit(words)
    }
    const agent = await stage.open({
      script: script()
        .do(submit)
        .do(() => stage.die()),
    })
    await stage.crash(agent.prompt('first'))
    await stage.crash(
      stage.resume({
        script: script()
          .text('1')
          .step()
          .do(() => stage.die()),
      }),
    )
    await stage.resume({ script: script().text('2').step().text('3') })

    expect(await stage.agent.path()).toEqual([
      'user: first',
      'assistant: 1',
      'user: second',
      'assistant: 2',
      'user: third',
      'assistant: 3',
    ])
    expect(stage.session.inbox.messages).toEqual([])
  })

  test('in a shell command gives its real exit code and whole output, and the command ran once', async () => {
    const stage = newStage()
    const inWork = (name: string): string => join(stage.workFolder, name)
    const command = 'echo begun >> runs; until [ -e go ]; do sleep 0.02; done; seq 1000; exit 7'
    const cast = { tools: [bashTool({ jobs: new Jobs() })] }
    const agent = await stage.open({ ...cast, script: script().toolCall('tool-1', 'bash', { command }) })
    const run = agent.prompt('Run it.')
    await vi.waitFor(() => expect(existsSync(inWork('runs'))).toBe(true), 20_000)
    void stage.die().catch(() => undefined)
    await stage.crash(run)
    writeFileSync(inWork('go'), '')
    await stage.resume({ ...cast, script: script().text('It ended with 7.') })

    const numbers = Array.from({ length: 1000 }, (_, index) => `${index + 1}\n`).join('')
    expect((await stage.agent.path())[2]).toBe(`tool: tool-1 failed: ${numbers}\n[Exit code 7.]`)
    expect(readFileSync(inWork('runs'), 'utf8')).toBe('begun\n')
    expect(await recordsOf(stage, 'tool_start')).toHaveLength(1)
  })

  test('with one of two parallel tools finished keeps its result, and runs only the other again', async () => {
    const stage = newStage()
    const read = tool('read', ({ callId }) => (callId === 'tool-1' ? stage.dead : { content: 'read before' }), {
      readOnly: true,
      replay: 'safe',
    })
    const calls = script().toolCall('tool-1', 'read', { path: 'a' }).toolCall('tool-2', 'read', { path: 'b' })
    const agent = await stage.open({ script: calls, tools: [read] })
    stage.dieWhen(isResult)
    await stage.crash(agent.prompt('Read both.'))
    const again = tool('read', () => ({ content: 'read after' }), { readOnly: true, replay: 'safe' })
    await stage.resume({ script: script().text('Done.'), tools: [again] })

    expect((await stage.agent.path()).slice(2)).toEqual([
      'tool: tool-2 read before',
      'tool: tool-1 read after',
      'assistant: Done.',
    ])
  })
})

describe.each([
  [
    'anthropic',
    (provider: FakeProvider): Model => anthropic({ ...connectionTo(provider, 'anthropic'), model: 'claude' }),
  ],
  [
    'openai-compatible',
    (provider: FakeProvider): Model =>
      openaiCompatible({ ...connectionTo(provider, 'openaiCompatible'), model: 'any', name: 'any' }),
  ],
])('over the wire of %s', (_, modelOf) => {
  async function withProvider(...steps: FakeStep[]): Promise<{ provider: FakeProvider; agent: TestAgent }> {
    const provider = await startFakeProvider()
    onTestFinished(() => provider.close())
    provider.script(...steps)
    const agent = await TestAgent.open({ model: modelOf(provider), settings: { retry: steadyRetry } })
    return { provider, agent }
  }

  test('429 with Retry-After: 20 is tried again after 20 s, not after 2', async () => {
    const { provider, agent } = await withProvider(
      { type: 'failure', error: 'rate-limited', retryAfter: { seconds: 20 } },
      { type: 'answer', content: [{ type: 'text', chunks: ['Hello.'] }] },
    )
    const run = agent.prompt('Hi.')
    expect(await agent.clock.skip()).toBe(20_000)
    expect(await run).toMatchObject({ outcome: 'completed' })
    expect(provider.requests).toHaveLength(2)
    expect(await agent.path()).toEqual(['user: Hi.', 'assistant: Hello.'])
  })

  test('a permanent error whose text contains "timeout" is not tried again', async () => {
    const { provider, agent } = await withProvider({
      type: 'failure',
      error: 'invalid-request',
      message: 'timeout: 503 is not a valid value, try again later',
    })
    expect(await agent.prompt('Hi.')).toMatchObject({ outcome: 'failed', reason: 'invalid-request' })
    expect(provider.requests).toHaveLength(1)
    expect(agent.clock.waits).toEqual([])
  })
})

function connectionTo(
  provider: FakeProvider,
  api: 'anthropic' | 'openaiCompatible',
): { apiKey: string; baseUrl: string } {
  return { apiKey: 'no key', baseUrl: provider.baseUrl(api) }
}

function requestsOf(agent: TestAgent): ScriptedModel['requests'] {
  return (agent.deps.model() as ScriptedModel).requests
}

/** The payloads of the records of one type. */
async function recordsOf(stage: Stage, type: string): Promise<unknown[]> {
  const isOfType = (line: Stored): boolean => line['type'] === type
  return (await storedIn(stage.session)).filter(isOfType).map((line) => line[type])
}
