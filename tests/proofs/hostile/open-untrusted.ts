// Works in repositories that nobody has trusted, one after the other, as a program would that has no terminal: opens a session there,
// lists the sessions, resumes a run whose process died, and prompts in a new session. `open-untrusted.ts <visits as JSON>`
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { openCodingAgent } from '@tapetree/agent'
import { answeringFetch } from './answering-fetch.ts'
import type { Visit, Visited } from './visit.ts'

const programs = process.env['PATH'] ?? ''

async function visit({ root, cwd, home, sessions, sessionId, isTrusted, marks }: Visit): Promise<Visited> {
  process.chdir(cwd)
  const requests: string[] = []
  const problems: string[] = []
  const store = openFileStore({ folder: sessions })
  const agent = await openCodingAgent({
    store,
    sessionId,
    cwd,
    home,
    env: { ...process.env, HOME: home, PATH: `${join(root, 'node_modules/.bin')}:${programs}` },
    fetch: answeringFetch(requests),
    whenUnanswered: 'deny',
    ...(isTrusted && { askTrust: () => Promise.resolve(true) }),
    onProblem: ({ source, message }) => problems.push(`${source}: ${message}`),
  })
  const { session, trust, settings, resources } = agent
  const { sessions: found } = await store.list({ cwd })
  const plan = await session.planResume()
  const run = await session.resume()
  const ends = [(await run?.done)?.outcome ?? 'nothing to resume']
  const resumed = requests.splice(0)
  mark(marks.prompt)
  await session.newSession()
  const outcome = await session.prompt('/review the code')
  ends.push(outcome.type === 'started' ? (await outcome.run.done).outcome : outcome.type)
  await agent.close()
  await store.close()
  const { values, rules, problems: faults } = settings
  return {
    state: trust.state,
    settings: { values, rules, problems: faults },
    resources,
    problems,
    listed: found.map(({ id }) => id),
    plan: plan?.matters.map((matter) => (matter.type === 'call' ? matter.action : matter.type)) ?? [],
    ends,
    requests: { resumed, prompted: requests },
  }
}

function mark(path: string): void {
  try {
    openSync(path, 'r')
  } catch {
    // It is not there: looking for it is the mark.
  }
}

for (const each of JSON.parse(process.argv[2] ?? '[]') as Visit[]) {
  mark(each.marks.begin)
  writeSync(1, `${JSON.stringify(await visit(each))}\n`)
}
