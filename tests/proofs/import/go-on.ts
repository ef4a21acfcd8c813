import { AgentSession, allowAll } from '@tapetree/agent'
import { startFakeProvider, type FakeProvider } from '@tapetree/agent/testing'
import type { SessionStore } from '@tapetree/session'
import { tmpdir } from 'node:os'
import { brokenDemands } from '../providers/host-demands.ts'
import { nameOf, openSubject, subjects, type Subject } from '../providers/subjects.ts'

const { prices } = subjects[0] as Subject

/** Every provider and host, and the models that the recordings name: what they thought is sent back only to them. */
export const successors: readonly Subject[] = [
  ...subjects,
  { api: 'google', provider: 'google', model: 'gemini-2.5-pro', prices },
  { api: 'openai', provider: 'openai', model: 'gpt-5-codex', prices },
  { api: 'anthropic', provider: 'fake', model: 'fake-1', prices },
  { api: 'openai', provider: 'fake', model: 'gpt-5-codex', prices },
]

/** Goes on with an imported session. The provider is strict: a request that the real one would refuse is refused. */
export async function goOn(
  { store, id }: { store: SessionStore; id: string },
  subject: Subject,
  fake: FakeProvider,
): Promise<string[]> {
  const first = fake.requests.length
  const agent = await AgentSession.open({
    store,
    sessionId: id,
    models: {
      open: () => Promise.resolve(openSubject(subject, { fake, hasSocket: false })),
      choices: () => Promise.resolve([{ provider: subject.provider, modelId: subject.model }]),
    },
    tools: () => [],
    hasSubagents: false,
    gate: () => allowAll,
    systemPrompt: () => 'You are a test.',
    thinkingLevel: 'low',
    cwd: tmpdir(),
  })
  try {
    await agent.setModel(subject.provider, subject.model)
    const outcome = await agent.prompt('Go on.')
    const end = outcome.type === 'started' ? await outcome.run.done : undefined
    const requests = fake.requests.slice(first)
    const broken = requests.flatMap((request) => [
      ...request.broken.map(({ rule, at }) => `${rule} at ${at}`),
      ...brokenDemands(request),
    ])
    const problems = broken.map((reason) => `${nameOf(subject)} refuses the request: ${reason}`)
    if (requests.length === 0) problems.push(`${nameOf(subject)} got no request`)
    if (end?.outcome !== 'completed')
      problems.push(`${nameOf(subject)}: the run ended as ${JSON.stringify(end ?? outcome.type)}`)
    const sent = requests.map(({ bytes }) => Buffer.from(bytes).toString()).join('\n')
    if (sent.includes(proof)) problems.push(`${nameOf(subject)} was sent a proof of thinking`)
    return problems
  } finally {
    await agent.close()
  }
}

/** The proof in the recordings. */
const proof = 'c2lnbmF0dXJlLW9mLXRoaW5raW5n'

export async function strictProvider(): Promise<FakeProvider> {
  const fake = await startFakeProvider()
  fake.script(() => ({ type: 'answer', content: [{ type: 'text', chunks: ['Gladly.'] }] }))
  return fake
}
