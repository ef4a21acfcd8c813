import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFileLock } from '@tapetree/session/stores/file'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { noRules } from '../permissions/rules.ts'
import { attach } from '../tools/commands/command.ts'
import { controlSocket, eventsFile, NetworkKeeper } from './network-keeper.ts'
import { probeSandbox } from './probe.ts'
import type { ProxyEvent } from './proxy.ts'
import type { NetworkAgentOptions, NetworkAgentReport } from './testing/network-agent.ts'

const ordinaryUser = 65_534
const users =
  process.getuid?.() === 0
    ? [
        { user: 'root', uid: 0 },
        { user: 'an ordinary user', uid: ordinaryUser },
      ]
    : [{ user: 'this user', uid: process.getuid?.() ?? 0 }]

let upstream: Server
let port: number
let folder: string
let networkFolder: string
let agents: NetworkAgent[]

beforeAll(async () => {
  upstream = createServer((request, response) => response.end(`hello ${request.headers.host}`)).listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  port = (upstream.address() as AddressInfo).port
})
afterAll(() => void upstream.close())
beforeEach(() => void (agents = []))
afterEach(async () => {
  for (const agent of agents) await agent.end()
  await vi.waitFor(() => expect(keepers()).toEqual([]), { timeout: 9000, interval: 50 })
  expect(existsSync(join(networkFolder, controlSocket))).toBe(false)
  for (const each of [folder, networkFolder]) rmSync(each, { recursive: true })
})

function makeFolder(uid: number): void {
  // Not below /tmp, which every box replaces, and where an ordinary user can reach it.
  const parent = process.getuid?.() === 0 ? '/var/lib' : join(process.cwd(), 'node_modules')
  folder = realpathSync(mkdtempSync(join(parent, 'tapetree-network-')))
  chmodSync(folder, 0o755)
  for (const name of ['work', 'home']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'work/get'), getter)
  // A box replaces /tmp, so boxes of other tests need not hide the socket of the keeper, which may go at any moment.
  networkFolder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-keeper-')))
  if (uid !== process.getuid?.()) execFileSync('chown', ['-R', `${uid}:${uid}`, folder, networkFolder])
}

/** `get <url>`: the status and body of the answer of the proxy. */
const getter = String.raw`
proxy=${'${HTTP_PROXY#http://}'}; user=${'${proxy%%@*}'}; place=${'${proxy##*@}'}
exec 3<>/dev/tcp/${'${place%:*}/${place#*:}'} || exit
printf 'GET %s HTTP/1.0\r\nProxy-Authorization: Basic %s\r\n\r\n' "$1" "$(printf %s "$user:" | base64 -w0)" >&3
tr -d '\r' <&3 | sed -n -e '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' -e '/^$/,$p' | tr -s '\n' ' '; echo
`
const get = (host: string): string => `bash get http://${host}:${port}/`
const bare = (address: string): string => `(exec 3<>/dev/tcp/${address}) 2>&1 | head -n 1 | sed 's/.*: //'`

const untilGo = 'touch up; until [ -e go ]; do sleep 0.05; done'

async function isRunning(): Promise<void> {
  await vi.waitFor(() => expect(existsSync(join(folder, 'work/up'))).toBe(true), { timeout: 25_000, interval: 20 })
}

/** The ids of running keepers of this test: each has the folder open. */
function keepers(): number[] {
  const list = execFileSync('ps', ['-ewwo', 'pid,args'], { encoding: 'utf8' })
  return list
    .split('\n')
    .filter((line) => line.includes('network-keeper-process.ts'))
    .map((line) => Number.parseInt(line, 10))
    .filter((pid) => {
      const open = spawnSync('ls', ['-l', `/proc/${pid}/fd`], { encoding: 'utf8' }).stdout
      return open.includes(networkFolder)
    })
}

/** The program that opens the port of the proxy in the namespace may still be ending. */
async function onlyKeeper(): Promise<number[]> {
  await vi.waitFor(() => expect(keepers()).toHaveLength(1), { timeout: 9000, interval: 50 })
  return keepers()
}

/** A keeper that waits for a lock opens its file every few milliseconds, for a moment. If that is never seen, the test proves less. */
async function isOpening(pid: number, name: string): Promise<void> {
  const files = `/proc/${pid}/fd`
  for (const until = Date.now() + 3000; Date.now() < until; await setImmediate()) {
    const open = readdirSync(files).map((each) => {
      try {
        return readlinkSync(join(files, each))
      } catch {
        return ''
      }
    })
    if (open.some((path) => path.endsWith(`/${name}`))) return
  }
}

class NetworkAgent {
  readonly process: ChildProcess
  readonly events: ProxyEvent[] = []
  readonly #reports: NetworkAgentReport[] = []
  #count = 0

  constructor(uid: number, options: Partial<NetworkAgentOptions> = {}) {
    const program = fileURLToPath(new URL('testing/network-agent.ts', import.meta.url))
    const env = { PATH: process.env['PATH'] }
    const stdio: ('pipe' | 'inherit')[] = ['pipe', 'pipe', 'inherit']
    this.process = spawn(process.execPath, ['-C', '@tapetree/source', program], { uid, gid: uid, cwd: '/', env, stdio })
    createInterface(this.process.stdout as NodeJS.ReadableStream).on('line', (line) => {
      const report = JSON.parse(line) as NetworkAgentReport
      if (report.type === 'event') this.events.push(report.event)
      else this.#reports.push(report)
    })
    const hosts = { 'ok.example': '127.0.0.1', 'other.example': '127.0.0.1' }
    this.#write({ folder, networkFolder, hosts, allowed: ['ok.example'], ...options })
    agents.push(this)
  }

  async start(command: string): Promise<string> {
    const id = `call_${agents.length}_${++this.#count}`
    this.#write({ id, command })
    const report = await this.#report((each) => each.type !== 'event' && each.id === id)
    if (report.type === 'failed') throw new Error(report.problem)
    return id
  }

  async run(command: string): Promise<string> {
    const id = await this.start(command)
    const report = await this.#report((each) => each.type === 'ended' && each.id === id)
    return report.type === 'ended' ? report.text.trim() : ''
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL')
    await once(this.process, 'exit')
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    this.process.stdin?.end()
    await once(this.process, 'exit')
  }

  #write(line: object): void {
    this.process.stdin?.write(`${JSON.stringify(line)}\n`)
  }

  async #report(isMeant: (report: NetworkAgentReport) => boolean): Promise<NetworkAgentReport> {
    return vi.waitFor(() => {
      const found = this.#reports.find(isMeant)
      if (!found) throw new Error('The agent has not reported yet.')
      return found
    }, 60_000)
  }
}

describe.each(users)('the network of the sandbox for $user', ({ uid }) => {
  beforeEach(() => makeFolder(uid))

  test('reaches an allowed host through the proxy and nothing else, and is one for all commands', async () => {
    const agent = new NetworkAgent(uid)
    expect(await agent.run(get('ok.example'))).toBe(`200 hello ok.example:${port}`)
    expect(await agent.run(get('other.example'))).toMatch(/^403 .*add "fetch other.example" to/)
    expect(await agent.run(bare(`127.0.0.1/${port}`))).toBe('Connection refused')
    expect(await agent.run(bare('192.0.2.1/80'))).toBe('Network is unreachable')
    expect(agent.events.map(({ type, host, callId }) => `${type} ${host} ${callId}`)).toEqual([
      'opened ok.example call_1_1',
      'closed ok.example call_1_1',
      'refused other.example call_1_2',
    ])
    const kept = readFileSync(join(networkFolder, eventsFile), 'utf8').trim().split('\n')
    expect(kept.map((line) => (JSON.parse(line) as ProxyEvent).type)).toEqual(['opened', 'closed', 'refused'])
    const server = `require('net').createServer((s)=>s.end('shared',()=>process.exit())).listen(8123,'127.0.0.1',()=>require('fs').writeFileSync('up',''))`
    await agent.start(`${process.execPath} -e "${server}"`)
    await isRunning()
    expect(await agent.run('cat < /dev/tcp/127.0.0.1/8123')).toBe('shared')
    const rights = 'ip link add d type dummy; nsenter -t 1 -n true; nsenter -t $PPID -U -n true; nsenter -t 1 -U true'
    expect(
      await agent.run(
        `for each in ${JSON.stringify(rights).replaceAll('; ', '" "')}; do eval "$each" 2>/dev/null && echo could; done; tail -n +3 /proc/net/dev | wc -l`,
      ),
    ).toBe('1')
  })

  test('stays filtered and connected for a command that outlives the agent, and ends with it', async () => {
    const first = new NetworkAgent(uid, { answer: true })
    const id = await first.start(`${untilGo}; ${get('ok.example')}; ${get('other.example')}; exit 7`)
    await isRunning()
    const [keeper] = keepers()
    await first.kill()
    writeFileSync(join(folder, 'work/go'), '')
    const command = attach(join(folder, `spool-${id}`))
    expect(await command.wait()).toMatchObject({ exit: { code: 7 } })
    const { pieces } = await command.output()
    const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
    expect(text).toMatch(new RegExp(`^200 hello ok.example:${port}\\s+403 .*does not allow the host other.example`))
    await vi.waitFor(() => expect(keepers()).not.toContain(keeper), { timeout: 9000, interval: 50 })
  })
})

describe('the keeper of the network', () => {
  beforeEach(() => makeFolder(process.getuid?.() ?? 0))

  test('is found again by the next agent of the session, whose rules then count', async () => {
    const uid = process.getuid?.() ?? 0
    const first = new NetworkAgent(uid)
    const id = await first.start(untilGo)
    await isRunning()
    const before = await onlyKeeper()
    await first.kill()
    const second = new NetworkAgent(uid, { allowed: ['other.example'] })
    expect(await second.run(get('other.example'))).toBe(`200 hello other.example:${port}`)
    expect(await second.run(get('ok.example'))).toMatch(/^403/)
    expect(keepers()).toEqual(before)
    writeFileSync(join(folder, 'work/go'), '')
    await attach(join(folder, `spool-${id}`)).wait()
  })

  test('takes the network with it when it is killed, and the next command gets a new one', async () => {
    const agent = new NetworkAgent(process.getuid?.() ?? 0, { answer: true })
    const running = agent.run(`${untilGo}; ${get('ok.example')} 2>&1`)
    await isRunning()
    for (const pid of keepers()) process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(keepers()).toEqual([]), { timeout: 9000, interval: 50 })
    writeFileSync(join(folder, 'work/go'), '')
    expect(await running).not.toContain('hello')
    expect(await agent.run(get('other.example'))).toBe(`200 hello other.example:${port}`)
  })

  test('lets no command start after it was killed, which a plain sentence says', async () => {
    const support = await probeSandbox()
    const bwrap = support.type === 'bubblewrap' ? support.path : ''
    const keeper = new NetworkKeeper({ folder: networkFolder, bwrap, rules: noRules, idleMs: 100 })
    const { argv } = await keeper.join([])
    for (const pid of await onlyKeeper()) process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(keepers()).toEqual([]), { timeout: 9000, interval: 50 })
    const [file = '', ...args] = argv
    const { status, stdout, stderr } = spawnSync(file, [...args, 'echo', 'ran'], { encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([
      1,
      '',
      'The command did not start, because the network of the sandbox has ended. The next command gets a new one, so run this one again.\n',
    ])
    rmSync(join(networkFolder, controlSocket))
    await keeper.close()
  })

  test('stays for a command that enters while the keeper is about to end', async () => {
    const support = await probeSandbox()
    const keeper = new NetworkKeeper({
      folder: networkFolder,
      bwrap: support.type === 'bubblewrap' ? support.path : '',
      rules: { ...noRules, user: [{ effect: 'allow', type: 'fetch', match: 'ok.example' }] },
      hosts: { 'ok.example': '127.0.0.1' },
      idleMs: 1,
    })
    const { argv, env } = await keeper.join([])
    const [file = '', ...args] = argv
    const [pid = 0] = await onlyKeeper()
    const tenRequests = `touch up; for i in $(seq 10); do ${get('ok.example')}; sleep 0.05; done`
    const running = await withFileLock(join(networkFolder, 'keeper'), async () => {
      await keeper.close()
      await isOpening(pid, 'keeper.lock')
      const options = { cwd: join(folder, 'work'), env: { PATH: process.env['PATH'], ...env } }
      const ended = promisify(execFile)(file, [...args, 'bash', '-c', tenRequests], options)
      await isRunning()
      return { ended }
    })
    const { stdout } = await running.ended
    expect(stdout.trim().split(/\s*\n/)).toEqual(Array.from({ length: 10 }, () => `200 hello ok.example:${port}`))
  })

  test('a full disk ends neither the keeper nor the results of later commands', async () => {
    symlinkSync('/dev/full', join(networkFolder, eventsFile))
    const agent = new NetworkAgent(process.getuid?.() ?? 0)
    for (let count = 0; count < 2; count++)
      expect(await agent.run(get('ok.example'))).toBe(`200 hello ok.example:${port}`)
    rmSync(join(networkFolder, eventsFile))
    const opened = { at: 1, type: 'opened', host: 'ok.example', port: 80, callId: 'call_1', address: '127.0.0.1' }
    writeFileSync(join(networkFolder, eventsFile), `{"at":1,"ty\n${JSON.stringify(opened)}\n`)
    const log = new NetworkKeeper({ folder: networkFolder, bwrap: 'bwrap', rules: noRules })
    expect(await log.trafficOf('call_1')).toEqual({ reached: ['ok.example'], refused: [] })
  })

  test('has rules in force as soon as they are set', async () => {
    const support = await probeSandbox()
    const bwrap = support.type === 'bubblewrap' ? support.path : ''
    const keeper = new NetworkKeeper({
      folder: networkFolder,
      bwrap,
      rules: noRules,
      hosts: { 'ok.example': '127.0.0.1' },
      idleMs: 100,
    })
    const { argv, env } = await keeper.join([])
    const [file = '', ...args] = argv
    for (const effect of ['allow', 'deny', 'allow'] as const) {
      await keeper.setRules({ ...noRules, user: [{ effect, type: 'fetch', match: '*.example' }] })
      const text = await promisify(execFile)(
        file,
        [...args, 'bash', join(folder, 'work/get'), `http://ok.example:${port}/`],
        {
          env: { PATH: process.env['PATH'], ...env },
        },
      )
      expect(text.stdout.slice(0, 3)).toBe(effect === 'allow' ? '200' : '403')
    }
    await keeper.close()
  })

  test('is one, however many agents start it at the same moment and however late they connect', async () => {
    const support = await probeSandbox()
    const bwrap = support.type === 'bubblewrap' ? support.path : ''
    for (let round = 0; round < 3; round += 1) {
      const options = { folder: networkFolder, bwrap, rules: noRules, idleMs: 1 }
      const all = Array.from({ length: 4 }, () => new NetworkKeeper(options))
      const boxes = await Promise.all(all.map((each) => each.join([])))
      expect(new Set(boxes.map(({ argv }) => argv.join(' '))).size).toBe(1)
      // The next ones start while this one ends.
      await Promise.all(all.map((each) => each.close()))
    }
  })

  test('is an error, and no open network, where namespaces are forbidden', async () => {
    const broken = join(folder, 'bwrap')
    writeFileSync(broken, '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n')
    chmodSync(broken, 0o755)
    const keeper = new NetworkKeeper({ folder: networkFolder, bwrap: broken, rules: noRules, idleMs: 100 })
    await expect(keeper.join([])).rejects.toThrow('bwrap: No permissions to create new namespace')
    await keeper.close()
  })
})
