import { allTools, fromCallbacks, onlyModel, type AgentEvent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { Stage } from '../../golden/stage.ts'
import { tool } from '../../golden/tool.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { door, finish, linesOf, openAgent, pathOf, textDeltas } from '../agent-session/opened-agent.ts'

function deltasOf(events: readonly AgentEvent[], kind: string): string {
  return events.flatMap((event) => (event.type === 'delta' && event.kind === kind ? [event.text] : [])).join('')
}

verifies(
  [
    'session-agent-refactor/1 streaming',
    'session-agent-refactor/3.2 named-callbacks',
    'session-agent-refactor/3.2 testable-callbacks',
  ],
  'each callback is called for its own events, in their order, and none has to be given',
  async () => {
    const answers = script().text('Let me look.').toolCall('a', 'read').toolResult('a', 'a tree').step().text('A tree.')
    const { agent } = await openAgent({ script: answers.step().error('auth', 'No.') })
    const told: string[] = []
    agent.subscribe(
      fromCallbacks({
        onToolCall: ({ name }) => told.push(`call ${name}`),
        onToolResult: ({ content }) => told.push(`result ${JSON.stringify(content)}`),
        onComplete: () => told.push('complete'),
        onError: ({ message }) => told.push(`error ${message}`),
      }),
    )
    agent.subscribe(fromCallbacks({}))
    await finish(agent, 'What is there?')
    await finish(agent, 'And now?')
    expect(told).toEqual(['call read', 'result "a tree"', 'complete', 'error No.'])
  },
)

verifies(
  [
    'session-agent-refactor/1 message-state',
    'session-agent-refactor/3.2 current-assistant',
    'session-agent-refactor/5.1 handler',
  ],
  'an answer grows from what streams in, part by part, and the log has it once, when it is whole',
  async () => {
    const wait = door()
    const { agent, events } = await openAgent({
      script: script()
        .reasoning('First I look.')
        .text('Then ', 'I ')
        .do(wait.pass)
        .text('say it.')
        .toolCall('a', 'read', { at: 1 })
        .step()
        .text('ok'),
    })
    const first = await agent.prompt('go')
    await wait.reached
    expect(linesOf(events, 'message').map(({ message }) => message.role)).toEqual(['user'])
    wait.open()
    if (first.type === 'started') await first.run.done
    expect(linesOf(events, 'message')[1]?.message.content).toEqual([
      { type: 'reasoning', reasoning: { text: 'First I look.' } },
      { type: 'text', text: { content: 'Then I say it.' } },
      { type: 'tool_use', toolUse: { id: 'a', name: 'read', input: { at: 1 } } },
    ])
  },
)

verifies(
  ['session-agent-refactor/2 latency', 'session-agent-refactor/3.2 content-callback'],
  'words are told before the model is asked for its next ones, all but a tail that may be the beginning of a secret',
  async () => {
    const heard: string[] = []
    const words = 'This is a sentence of some length. '
    const answer = script()
    for (let count = 0; count < 5; count++) answer.text(words).do(() => heard.push(textDeltas(events).join('')))
    const { agent, events } = await openAgent({ script: answer })
    await finish(agent, 'go')
    expect(
      heard.map((text, index) =>
        text.startsWith(
          words
            .repeat(index + 1)
            .trimEnd()
            .slice(0, -8),
        ),
      ),
    ).toEqual(Array(5).fill(true))
    expect(textDeltas(events).join('')).toBe(words.repeat(5))
  },
)

verifies(
  [
    'session-agent-refactor/3.2 reasoning-callbacks',
    'session-agent-refactor/5.1 reasoning-start',
    'session-agent-refactor/5.1 reasoning-delta',
  ],
  'thoughts are told as they come and kept together, each beginning anew where the model begins anew',
  async () => {
    const thinking = script().reasoningStart().reasoningDelta('They ').reasoningDelta('greet me.').reasoningEnd()
    const { agent, events } = await openAgent({ script: thinking.reasoning('I greet back.').text('Hello.') })
    await finish(agent, 'Hi.')
    expect(deltasOf(events, 'reasoning')).toBe('They greet me.I greet back.')
    expect((await pathOf(agent))[1]).toBe('assistant: (They greet me.) (I greet back.) Hello.')
  },
)

verifies(
  [
    'session-agent-refactor/5.1 reasoning-end',
    'session-agent-refactor/5.1 signatures',
    'session-agent-refactor/5.2 finishes-thinking',
  ],
  'the end of a thought closes it, with its signature: what comes then is no part of it',
  async () => {
    const { agent, events } = await openAgent({
      script: script().reasoning('Hm.', 'signed').text('Hello.').reasoning('More.'),
    })
    await finish(agent, 'Hi.')
    expect(linesOf(events, 'message')[1]?.message.content).toEqual([
      { type: 'reasoning', reasoning: { text: 'Hm.', signature: 'signed' } },
      { type: 'text', text: { content: 'Hello.' } },
      { type: 'reasoning', reasoning: { text: 'More.' } },
    ])
  },
)

verifies(
  ['session-agent-refactor/5.1 leading-newline', 'session-agent-refactor/5.2 strips-newline'],
  'an empty line before the first words of an answer is left out, where they are told and where they are kept',
  async () => {
    const { agent, events } = await openAgent({ script: script().text('\nHello, you.') })
    await finish(agent, 'Hi.')
    expect([textDeltas(events).join(''), (await pathOf(agent))[1]]).toEqual(['Hello, you.', 'assistant: Hello, you.'])
  },
)

verifies(
  ['session-agent-refactor/5.1 text-appended', 'session-agent-refactor/5.2 keeps-newline'],
  'later words are added as they are, empty lines and all',
  async () => {
    const { agent } = await openAgent({ script: script().text('First', '\nSecond', '\n\nThird') })
    await finish(agent, 'Hi.')
    expect((await pathOf(agent))[1]).toBe('assistant: First\nSecond\n\nThird')
  },
)

verifies(
  ['session-agent-refactor/5.1 update', 'session-agent-refactor/3.2 finish', 'session-agent-refactor/3.3 finish-state'],
  'what streams is in the draft file before the answer is whole, and the draft is empty when the run is over',
  async () => {
    const stage = new Stage(temporaryFolder())
    onTestFinished(() => stage.clear())
    const agent = await stage.open({
      script: script()
        .text('So far, so good.')
        .do(() => stage.untilDrafted('So far')),
    })
    await agent.prompt('go')
    const draft = join(stage.session.localFolder as string, 'draft.jsonl')
    expect(readFileSync(draft, 'utf8')).toBe('')
    expect(await agent.path()).toEqual(['user: go', 'assistant: So far, so good.'])
  },
)

verifies(
  ['session-agent-refactor/5.1 tool-input-start'],
  'a call that was announced and never came is in the answer as far as it came, and is answered',
  async () => {
    const stopping = script().toolStart('a', 'read').toolInput('{"path": "ma').cancel()
    const scripted = scriptedModel(stopping, { onCancel: () => void agent.abort() })
    const { agent, events } = await openAgent({ scripted })
    expect(await finish(agent, 'go')).toMatchObject({ outcome: 'aborted' })
    expect(linesOf(events, 'message')[1]?.message.content).toEqual([
      { type: 'tool_use', toolUse: { id: 'a', name: 'read', input: {}, partialInput: '{"path": "ma' } },
    ])
    expect((await pathOf(agent)).at(-1)).toBe('tool: a failed: Not run: the user stopped the run.')
  },
)

verifies(
  [
    'session-agent-refactor/3.2 tool-callbacks',
    'session-agent-refactor/5.1 tool-call',
    'session-agent-refactor/5.1 tool-result',
  ],
  'the input of a call is told as it comes, the call is kept whole, and its result is a message of role tool',
  async () => {
    const call = script().toolStart('a', 'read').toolInput('{"at":').toolInput('1}').toolCall('a', 'read', { at: 1 })
    const { agent, events } = await openAgent({ script: call.toolResult('a', 'a tree').step().text('ok') })
    await finish(agent, 'go')
    expect(deltasOf(events, 'tool_input')).toBe('{"at":1}')
    const [, answer, result] = linesOf(events, 'message').map(({ message }) => message)
    expect(answer?.content).toEqual([{ type: 'tool_use', toolUse: { id: 'a', name: 'read', input: { at: 1 } } }])
    expect(result).toMatchObject({
      role: 'tool',
      content: [{ type: 'tool_result', toolResult: { toolUseId: 'a', content: 'a tree' } }],
    })
  },
)

verifies(
  ['session-agent-refactor/3.2 retry-callback'],
  'who listens is told of a retry: after which error, the how manieth it is, and how long it waits',
  async () => {
    const { agent, clock, events } = await openAgent({
      script: script().error('overloaded', 'Busy.', { retryAfterMs: 7000 }).step().text('ok'),
      settings: () => ({ retry: { maxRetries: 3, baseMs: 10, capMs: 60_000, longestRetryAfterMs: 60_000, jitter: 0 } }),
    })
    const outcome = await agent.prompt('go')
    await clock.skip()
    if (outcome.type === 'started') await outcome.run.done
    expect(events.find(({ type }) => type === 'auto_retry_start')).toEqual({
      type: 'auto_retry_start',
      runId: outcome.runId,
      attempt: 1,
      delayMs: 7000,
      error: { kind: 'overloaded', message: 'Busy.' },
    })
  },
)

verifies(
  [
    'session-agent-refactor/3.2 prepare-step',
    'session-agent-refactor/5.1 create-assistant',
    'session-agent-refactor/5.2 creates-assistant',
  ],
  'the answer has its id before its first word, and its entry, the last one of the path, has the same',
  async () => {
    const wait = door()
    const { agent, events } = await openAgent({ script: script().text('Hello there.').do(wait.pass) })
    const first = await agent.prompt('Hi.')
    await wait.reached
    const [item] = events.flatMap((event) => (event.type === 'delta' ? [event.item] : []))
    const asked = agent.session.leafId
    wait.open()
    if (first.type === 'started') await first.run.done
    expect(agent.session.leafId).toBe(item)
    expect(asked).not.toBe(item)
  },
)

verifies(
  ['session-agent-refactor/5.1 assistant-role', 'session-agent-refactor/5.1 assistant-model'],
  'an answer says which model of which provider gave it',
  async () => {
    const scripted = scriptedModel(script().text('Hello.'), { provider: 'somebody', id: 'model-7' })
    const { agent, events } = await openAgent({ scripted })
    await finish(agent, 'Hi.')
    expect(linesOf(events, 'message')[1]?.message).toMatchObject({
      role: 'assistant',
      provider: 'somebody',
      model: 'model-7',
    })
  },
)

verifies(
  [
    'session-agent-refactor/3.3 prompt-and-tools',
    'session-agent-refactor/3.3 handler-and-runner',
    'session-agent-refactor/5.1 prepare-step',
  ],
  'every request of a run has the system prompt, the tools and all that was said before it',
  async () => {
    const { agent, model } = await openAgent({
      script: script().toolCall('a', 'read').step().toolCall('b', 'write').step().text('ok'),
      systemPrompt: () => 'Be brief.',
    })
    await finish(agent, 'go')
    expect(model.requests.map(({ system, tools, messages }) => [system, tools.length, messages.length])).toEqual([
      ['Be brief.', 2, 1],
      ['Be brief.', 2, 3],
      ['Be brief.', 2, 5],
    ])
  },
)

verifies(
  ['session-agent-refactor/5.1 queued-messages'],
  'what was queued to be heard now is in the next request, and what was queued for later is not',
  async () => {
    const read = tool('read', async () => {
      await agent.followUp('later')
      await agent.steer('now')
      return { content: 'ok' }
    })
    const answers = script().toolCall('a', 'read').step().text('1').step().text('2')
    const { agent, model } = await openAgent({ script: answers, tools: [read] })
    await finish(agent, 'go')
    const sent = model.requests.map(({ messages }) => JSON.stringify(messages.at(-1)))
    expect([sent[1]?.includes('now'), sent[1]?.includes('later'), sent[2]?.includes('later')]).toEqual([
      true,
      false,
      true,
    ])
  },
)

verifies(
  ['session-agent-refactor/5.1 context-message-id'],
  'a tool is told which call of which run it answers',
  async () => {
    const told: unknown[] = []
    const read = tool('read', ({ runId, callId }) => {
      told.push({ runId, callId })
      return { content: 'ok' }
    })
    const { agent } = await openAgent({ script: script().toolCall('a', 'read').step().text('ok'), tools: [read] })
    const outcome = await agent.prompt('go')
    if (outcome.type === 'started') await outcome.run.done
    expect(told).toEqual([{ runId: outcome.runId, callId: 'a' }])
  },
)

verifies(
  ['session-agent-refactor/5.1 context-model-name', 'session-agent-refactor/5.1 context-images'],
  'a tool is told the model and whether it sees images: an image is read as words by a model that does not',
  async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'a.png'), Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1'))
    const told: unknown[] = []
    const ask = tool('ask', ({ model }) => {
      told.push(model)
      return { content: 'ok' }
    })
    const read = allTools().filter(({ name }) => name === 'read')
    const limits = { contextTokens: 100_000, outputTokens: 1000 }
    const calls = () => script().toolCall('a', 'ask').toolCall('b', 'read', { path: 'a.png' }).step().text('ok')
    const seeing = scriptedModel(calls(), { provider: 'p', id: 'seeing', limits })
    const blind = scriptedModel(calls(), { provider: 'p', id: 'blind', limits: { ...limits, hasImages: false } })
    for (const model of [seeing, blind]) {
      const { agent } = await openAgent({ models: onlyModel(model), tools: [ask, ...read], cwd: folder })
      await finish(agent, 'go')
    }
    expect(told).toEqual([
      { provider: 'p', id: 'seeing', hasImages: true },
      { provider: 'p', id: 'blind', hasImages: false },
    ])
    const [shown, described] = [seeing, blind].map(({ requests }) => JSON.stringify(requests[1]?.messages.at(-1)))
    expect(shown).toContain('"type":"image"')
    expect(described).not.toContain('"type":"image"')
    expect(described).toContain('blind does not support images')
  },
)

verifies(
  ['session-agent-refactor/5.1 provider-options'],
  'what one provider gave with its thoughts is not sent to a model of another, and stays in the log',
  async () => {
    const a = scriptedModel(script().reasoning('Hm.', 'signed by a').text('Hello.'), { provider: 'a' })
    const b = scriptedModel(script().text('Hello, too.'), { provider: 'b' })
    const { agent, events } = await openAgent({
      models: {
        open: (provider) => Promise.resolve(provider === 'a' ? a : b),
        choices: () => Promise.resolve([{ provider: 'a', modelId: 'scripted-1' }]),
      },
    })
    await finish(agent, 'Hi.')
    await agent.setModel('b', 'scripted-1')
    await finish(agent, 'And you?')
    expect(JSON.stringify(b.requests)).not.toContain('signed by a')
    expect(JSON.stringify(linesOf(events, 'message'))).toContain('signed by a')
  },
)
