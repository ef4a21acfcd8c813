// Sessions on two servers call tools on two tool hosts, while connections, hosts and servers fail. Runs in process namespaces
// of its own; see ../tool-host.ts.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { RemoteSession } from '@tapetree/client'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { NatsProcess } from '../../../packages/server/src/bus/testing/nats-process.ts'
import { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { sizes } from '../tool-host.ts'
import { ServedNode } from '../takeover/served-node.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { callOf, promptOf, sharedText, typedExitCode, typedOf, type Job } from './calls.ts'
import { Front } from './front.ts'
import { HostProcess } from './host-process.ts'
import { hostileHost } from './hostile-host.ts'
import { hostileService } from './hostile-service.ts'

const handsCount = 50
/** In so many of them, the user has typed a command, too. */
const typedCount = 10
const callsOfJob = 8
/** Then its place is taken by a new one: what a long history costs is not what this proof is about. */
const jobsOfSession = 12
const patienceMs = 90_000
const program = new URL('service-process.ts', import.meta.url).pathname

async function prove(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder } = context
  chmodSync(folder, 0o755) // the database runs as somebody else
  const trial = await Trial.start(context)
  await trial.takeOverWithHands()
  await trial.callWhileThingsFail(sizes[size])
  const problems = [
    ...trial.problems,
    ...(await trial.check()),
    ...(await hostileService(join(folder, 'hostile'), { requests: sizes[size].hostile, random: context.random, say })),
    ...(await hostileHost(join(folder, 'hostile'), { messages: sizes[size].hostile, random: context.random, say })),
  ]
  for (const problem of problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  return { ok: problems.length === 0, figures: { ...trial.figures, problems: problems.length } }
}

interface CalledSession {
  id: string
  host: HostProcess
  jobs: Job[]
}

interface ReachedHost {
  process: HostProcess
  front: Front
}

type Fault = 'cut' | 'host killed' | 'host restarted' | 'server killed'

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    handed: 0,
    calls: 0,
    typed: 0,
    notRun: 0,
    unknown: 0,
    cuts: 0,
    hostKills: 0,
    hostRestarts: 0,
    serverKills: 0,
  }
  readonly #context: InsideContext
  readonly #database: PostgresServer
  readonly #nats: NatsProcess
  readonly #sessions: CalledSession[] = []
  /** The jobs whose last answer is in the log, and the commands of the user whose outcome is. */
  readonly #done = new Set<string>()
  readonly #hosts: ReachedHost[] = []
  #nodes: ServedNode[] = []
  #next: ServedNode
  #nodesMade = 0
  #jobsMade = 0

  private constructor(context: InsideContext, parts: { database: PostgresServer; nats: NatsProcess }) {
    this.#context = context
    this.#database = parts.database
    this.#nats = parts.nats
    this.#next = this.#load()
  }

  static async start(context: InsideContext): Promise<Trial> {
    const folder = join(context.folder, 'database')
    mkdirSync(folder)
    const database = await PostgresServer.start({ folders: [folder] })
    await database.admin('create database sessions')
    await migratePostgres(database.urlFor('admin', 'sessions'))
    await database.admin('create role app login in role tapetree_app')
    const trial = new Trial(context, { database, nats: await NatsProcess.start() })
    await trial.#serve()
    await trial.#serve()
    for (const name of ['left', 'right']) await trial.#openHost(name)
    return trial
  }

  /**
   * A server dies while 50 sessions run a command of the model, and some also one of the user: each returns its real result to
   * the next owner.
   */
  async takeOverWithHands(): Promise<void> {
    const [owner] = this.#nodes as [ServedNode]
    const gate = 'gate'
    const jobs = await Promise.all(
      Array.from({ length: handsCount }, async (_, index) => {
        const session = await this.#create(index % 2, owner)
        const job = await this.#prompt(session, { calls: 1, gate, node: owner, isTyped: index < typedCount })
        return { job, typed: this.#type(session, job) }
      }),
    )
    const begun = (): number => this.#hosts.reduce((sum, { process }) => sum + ledgerOf(process).length, 0)
    await this.#within('all commands have begun', async () => begun() === handsCount + typedCount)
    const struckMs = Date.now()
    await this.#killNode(owner)
    for (const { process } of this.#hosts) writeFileSync(join(process.options.folder, gate), '')
    await this.#within(
      'all commands have returned to the next owner',
      async () => (await this.#look(), jobs.every(({ job }) => this.#isDone(job))),
    )
    await Promise.all(jobs.map(({ typed }) => typed))
    this.figures.handed = handsCount + typedCount
    this.#context.say(
      `a server died while ${handsCount + typedCount} commands ran on two hosts; all had their results ${Math.round((Date.now() - struckMs) / 100) / 10} s later`,
    )
  }

  async callWhileThingsFail({
    calls,
    callsBetweenFaults,
  }: {
    calls: number
    callsBetweenFaults: number
  }): Promise<void> {
    const { random, say } = this.#context
    let left = calls
    const kinds: Fault[] = ['cut', 'host killed', 'host restarted', 'server killed']
    const due = new Set(kinds)
    const work = async (first: CalledSession): Promise<void> => {
      let session = first
      while ((left > 0 || due.size > 0) && this.problems.length === 0) {
        left -= callsOfJob
        if (session.jobs.length >= jobsOfSession) session = await this.#replace(session)
        const job = await this.#prompt(session, { calls: callsOfJob, isTyped: true })
        await this.#type(session, job)
        await this.#within(`job ${job.tag} is done`, async () => this.#isDone(job))
        this.figures.calls += callsOfJob
        if (this.figures.calls % 1000 === 0) say(`${this.figures.calls} calls`)
      }
    }
    const working = Promise.all(this.#sessions.slice(0, 24).map(work))
    const over = new AbortController()
    void working.then(() => over.abort())
    const looking = (async (): Promise<void> => {
      while (!over.signal.aborted) {
        await this.#look()
        await setTimeout(200)
      }
    })()
    for (let count = 0; !over.signal.aborted; count++) {
      // Each kind comes soon; the death of a server, which takes longest, is rarer.
      const kind =
        due.size > 0 ? ([...due][0] as Fault) : (kinds[Math.floor(random() * (count % 10 === 0 ? 4 : 3))] as Fault)
      await this.#strike(kind)
      due.delete(kind)
      const madeThen = this.figures.calls
      await setTimeout(300 + random() * 1500)
      // Also calls that nothing disturbs.
      const calm = due.size > 0 ? 0 : random() * 2 * callsBetweenFaults
      while (this.figures.calls < madeThen + calm && !over.signal.aborted) await setTimeout(50)
    }
    await Promise.all([working, looking])
    const { calls: made, cuts, hostKills, hostRestarts, serverKills } = this.figures
    say(
      `${made} calls; ${cuts} cuts, ${hostKills} kills and ${hostRestarts} restarts of hosts, ${serverKills} deaths of servers`,
    )
  }

  /** Each call ran at most once, and its result is whole and real. */
  async check(): Promise<string[]> {
    const problems: string[] = []
    const rows = (await this.#database.admin(
      `select s.id, e.line from tapetree.entry e join tapetree.session s using (key) order by s.id, e.n`,
      'sessions',
    )) as { id: string; line: string }[]
    const logs = Map.groupBy(rows, ({ id }) => id)
    for (const { process } of this.#hosts) {
      const ran = Map.groupBy(ledgerOf(process), (id) => id)
      for (const [id, times] of ran) if (times.length > 1) problems.push(`${id} ran ${times.length} times`)
    }
    for (const { id, host, jobs } of this.#sessions) {
      const { results, typed } = resultsIn((logs.get(id) ?? []).map(({ line }) => line))
      const ran = new Set(ledgerOf(host))
      for (const job of jobs) {
        const outcomes = typed.get(typedOf(job).command) ?? []
        const problem = job.isTyped ? this.#judgeTyped(job, { outcomes, host, ran }) : undefined
        if (problem !== undefined) problems.push(`${job.tag}-typed: ${problem}`)
        let jobId: string | undefined
        for (let step = 1; step <= job.calls; step++) {
          const planned = callOf(job, step, jobId)
          const result = results.get(`${job.tag}-${step}`)
          jobId = /background as (job-\w+)/.exec(result?.text ?? '')?.[1] ?? jobId
          const problem = this.#judge({ planned, result, host, ran })
          if (problem !== undefined) problems.push(`${job.tag}-${step} (${planned.tool}): ${problem}`)
        }
      }
    }
    return problems
  }

  #judge({
    planned,
    result,
    host,
    ran,
  }: {
    planned: ReturnType<typeof callOf>
    result: CallResult | undefined
    host: HostProcess
    ran: ReadonlySet<string>
  }): string | undefined {
    if (!result) return 'it has no result'
    const { text, startedMs, endedMs } = result
    if (/may have taken effect/.test(text)) {
      this.figures.unknown++
      const died = host.kills.some((ms) => ms > startedMs - 1000 && ms < endedMs + 1000)
      if (!died) return `its outcome is unknown, and its host lived: ${text.slice(0, 200)}`
      return planned.tool === 'bash' ? unknownCommand(text) : undefined
    }
    const { says, orSays = says } = planned
    if (!saysAll(text, says) && !saysAll(text, orSays)) return `it should say ${says.join(', ')}: ${text.slice(0, 300)}`
    if (planned.ledger !== undefined && !ran.has(planned.ledger)) return 'it has a result, and never ran'
    const path = planned.tool === 'write' ? join(host.options.folder, String(planned.input['path'])) : undefined
    if (path !== undefined && !existsSync(path)) return 'its file does not exist'
    return undefined
  }

  /** A command continues without its host, so its outcome is always known. */
  #judgeTyped(
    job: Job,
    { outcomes, host, ran }: { outcomes: readonly TypedOutcome[]; host: HostProcess; ran: ReadonlySet<string> },
  ): string | undefined {
    const [outcome, second] = outcomes
    if (!outcome || second) return `it has ${outcomes.length} outcomes`
    const { text, exitCode } = outcome
    const { ledger, says } = typedOf(job)
    if (/may have taken effect/.test(text)) return unknownCommand(text)
    if (text.startsWith('Not run: ')) {
      this.figures.notRun++
      return ran.has(ledger) ? `it ran, and its outcome is: ${text}` : undefined
    }
    if (!ran.has(ledger)) return `it has a result, and never ran on ${host.options.name}`
    if (!saysAll(text, says)) return `it should say ${says.join(', ')}: ${text.slice(0, 300)}`
    return exitCode === typedExitCode ? undefined : `its exit code is ${exitCode}`
  }

  async #strike(kind: Fault): Promise<void> {
    const { random } = this.#context
    const { process, front } = this.#hosts[Math.floor(random() * this.#hosts.length)] as ReachedHost
    switch (kind) {
      case 'cut':
        this.figures.cuts++
        return front.cut(random() * 1500)
      case 'host killed':
        this.figures.hostKills++
        return process.killAndRestart()
      case 'host restarted':
        this.figures.hostRestarts++
        return process.killAndRestart('SIGTERM')
      case 'server killed':
        this.figures.serverKills++
        return this.#killNode(this.#anyNode())
      default:
        kind satisfies never
    }
  }

  #anyNode(): ServedNode {
    return this.#nodes[Math.floor(this.#context.random() * this.#nodes.length)] as ServedNode
  }

  async #killNode(node: ServedNode): Promise<void> {
    this.#nodes = this.#nodes.filter((each) => each !== node)
    await node.kill()
    await this.#serve()
  }

  async #openHost(name: string): Promise<void> {
    const folder = join(this.#context.folder, name)
    for (const sub of ['made', 'slots']) mkdirSync(join(folder, sub), { recursive: true })
    writeFileSync(join(folder, 'shared.txt'), `${sharedText}\n`)
    const front = await Front.start(() => this.#nodes.map(({ url }) => Number(new URL(url).port)))
    const home = join(this.#context.folder, `${name}-home`)
    const compileCache = join(this.#context.folder, 'cache')
    this.#hosts.push({ process: new HostProcess({ name, folder, home, url: front.url, compileCache }), front })
    const [node] = this.#nodes as [ServedNode]
    await this.#within(`host ${name} is connected`, async () => {
      const hosts = (await (await fetch(new URL('/api/tool-hosts', node.url))).json()) as { tool_hosts: unknown[] }
      return hosts.tool_hosts.length === this.#hosts.length
    })
  }

  async #create(host: number, { url }: ServedNode): Promise<CalledSession> {
    const { process } = this.#hosts[host] as ReachedHost
    const workspace = { host: process.options.name, workspace: 'app' }
    const made = await post(new URL('/api/sessions', url), { workspace })
    const session = { id: String(made['id']), host: process, jobs: [] }
    this.#sessions.push(session)
    return session
  }

  /** A new session on the same host, made by any server. */
  async #replace({ host }: CalledSession): Promise<CalledSession> {
    const index = this.#hosts.findIndex(({ process }) => process === host)
    let made: CalledSession | undefined
    await this.#within('a session is created', async () => {
      made = await this.#create(index, this.#anyNode()).catch(() => undefined)
      return made !== undefined
    })
    if (!made) throw new Error('No session could be created.')
    return made
  }

  /** Sent until it is accepted, by any server. */
  async #prompt(session: CalledSession, { node, ...order }: Omit<Job, 'tag'> & { node?: ServedNode }): Promise<Job> {
    const job: Job = { tag: `job${++this.#jobsMade}`, ...order }
    session.jobs.push(job)
    const slots = Array.from({ length: job.calls }, (_, index) => `slot ${index + 1};\n`).join('')
    writeFileSync(join(session.host.options.folder, 'slots', `${job.tag}.txt`), slots)
    await this.#within(`the prompt of ${job.tag} is accepted`, async () => {
      const { url } = node ?? this.#anyNode()
      const path = `/api/sessions/${session.id}/prompt`
      return post(new URL(path, url), { text: promptOf(job) }, job.tag).then(
        () => true,
        () => false,
      )
    })
    return job
  }

  /** Sends the command of the user of a job until it is accepted, and waits for its outcome. */
  async #type({ id, host }: CalledSession, job: Job): Promise<void> {
    if (!job.isTyped) return
    const { command, ledger } = typedOf(job)
    const { front } = this.#hosts.find(({ process }) => process === host) as ReachedHost
    const client = await RemoteSession.open({
      ...{ baseUrl: front.url, token: 'proof', sessionId: id },
      // It tries again soon, and not at once.
      random: () => 0.1,
    })
    try {
      let isAccepted = false
      const send = async (): Promise<void> => {
        while (!isAccepted) {
          isAccepted = await client.run('bash', { command }, { id: ledger }).then(
            () => true,
            // Such as a host that cannot be reached.
            () => setTimeout(50, false),
          )
        }
      }
      void send()
      await this.#within(`${ledger} has an outcome`, async () => isAccepted && this.#done.has(ledger))
      isAccepted = true
      this.figures.typed++
    } finally {
      await client.close()
    }
  }

  #isDone(job: Job): boolean {
    return this.#done.has(job.tag) && (!job.isTyped || this.#done.has(typedOf(job).ledger))
  }

  /** Reads the ends of the sessions that have something to do. */
  async #look(): Promise<void> {
    const busy = this.#sessions.filter(({ jobs }) => jobs.some((job) => !this.#isDone(job)))
    if (busy.length === 0) return
    const rows = (await this.#database.admin(
      `select distinct coalesce(substring(e.line from 'Done: (job[0-9]+)\\.'), substring(e.line from '(job[0-9]+-typed)')) as tag
        from tapetree.session s, lateral (select line from tapetree.entry where key = s.key order by n desc limit 40) e
        where s.id in (${busy.map(({ id }) => `'${id}'`).join(', ')})
          and (e.line like '%Done: job%' or e.line like '%"bash_execution":%')`,
      'sessions',
    )) as { tag: string | null }[]
    for (const { tag } of rows) if (tag !== null) this.#done.add(tag)
  }

  #load(): ServedNode {
    const compileCache = join(this.#context.folder, 'cache')
    return new ServedNode(`node${++this.#nodesMade}`, { compileCache, program })
  }

  async #serve(): Promise<void> {
    const node = this.#next
    this.#next = this.#load()
    const folder = join(this.#context.folder, node.name)
    mkdirSync(folder)
    const database = this.#database.urlFor('app', 'sessions')
    await node.serve({ database, busUrl: this.#nats.url, folder, ledger: '', seed: 1 })
    this.#nodes.push(node)
  }

  async #within(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const endMs = Date.now() + patienceMs
    while (!(await isSo())) {
      if (this.problems.length > 0) return
      if (Date.now() > endMs) {
        const outputs = this.#hosts.map(({ process }) => process.lastOutput.slice(-300))
        this.problems.push(`not within ${patienceMs / 1000} s: ${what}; ${JSON.stringify(outputs)}`)
        return
      }
      await setTimeout(50)
    }
  }
}

interface CallResult {
  text: string
  startedMs: number
  endedMs: number
}

/** Of a command of the user. */
interface TypedOutcome {
  text: string
  exitCode: number | undefined
}

function unknownCommand(text: string): string {
  return `a command continues without its host, and has an unknown outcome: ${text}`
}

/** The results of the calls by their ids, and the outcomes of the commands of the user by their texts. */
function resultsIn(lines: readonly string[]): {
  results: Map<string, CallResult>
  typed: Map<string, TypedOutcome[]>
} {
  const started = new Map<string, number>()
  const results = new Map<string, CallResult>()
  const typed = new Map<string, TypedOutcome[]>()
  for (const line of lines) {
    const { type, timestamp, ...rest } = JSON.parse(line) as { type: string; timestamp: string } & Record<
      string,
      unknown
    >
    const atMs = Date.parse(timestamp)
    if (type === 'tool_start') started.set((rest['tool_start'] as { call_id: string }).call_id, atMs)
    if (type !== 'message') continue
    const { content, bash_execution: bash } = rest['message'] as {
      content: { type: string; tool_result?: Record<string, unknown> }[]
      bash_execution?: { command: string; output: string; exit_code?: number }
    }
    if (bash) {
      const outcome = { text: bash.output, exitCode: bash.exit_code }
      typed.set(bash.command, [...(typed.get(bash.command) ?? []), outcome])
    }
    for (const { tool_result: result } of content) {
      if (!result) continue
      const id = String(result['tool_use_id'])
      const said = result['content']
      const text = typeof said === 'string' ? said : JSON.stringify(said)
      results.set(id, { text, startedMs: started.get(id) ?? atMs, endedMs: atMs })
    }
  }
  return { results, typed }
}

/** Whether a text has all parts, in this order. */
function saysAll(text: string, parts: readonly string[]): boolean {
  let from = 0
  return parts.every((part) => {
    const at = text.indexOf(part, from)
    from = at + part.length
    return at !== -1
  })
}

function ledgerOf({ options }: HostProcess): string[] {
  const path = join(options.folder, 'ledger')
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
}

async function post(url: URL, body: unknown, key?: string): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  })
  if (!response.ok) throw new Error(`${url.pathname}: ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}

await runInside(prove)
