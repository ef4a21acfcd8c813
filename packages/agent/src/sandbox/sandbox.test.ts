import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startCommand } from '../tools/commands/command.ts'
import { commandEnvironment } from '../tools/commands/environment.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { probeSandbox } from './probe.ts'
import { Sandbox } from './sandbox.ts'

let folder: string
let work: string
let home: string
let sandbox: Sandbox
let count = 0

beforeAll(async () => {
  // Not below /tmp, which every box replaces.
  folder = realpathSync(mkdtempSync(join(process.cwd(), 'node_modules/.sandbox-test-')))
  ;[work, home] = [join(folder, 'work'), join(folder, 'home')]
  for (const path of ['work', 'home/.ssh', 'home/.cache', 'outside', 'data'])
    mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(home, '.ssh/id_ed25519'), 'canary: key')
  writeFileSync(join(folder, 'data/credentials.json'), 'canary: data')
  writeFileSync(join(folder, 'outside/file'), 'before')
  execFileSync('git', ['init', '-q', work])
  writeFileSync(join(work, '.env'), 'canary: env')
  sandbox = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), own: [join(folder, 'data')] })
})
afterAll(async () => {
  await dismissSupervisor()
  rmSync(folder, { recursive: true })
})

async function inBox(
  command: string,
  options: { isReadOnly?: boolean; box?: Sandbox } = {},
): Promise<{ code: number | null; text: string }> {
  const { box = sandbox, isReadOnly = false } = options
  const { argv, env } = await box.box(work, { isReadOnly })
  const spool = join(folder, `spool-${++count}`)
  const environment = commandEnvironment({ PATH: process.env['PATH'], HOME: home }, { set: env })
  const started = await startCommand({ spool, command, cwd: work, env: environment, box: argv, deadlineMs: 30_000 })
  const outcome = await started.wait()
  const { pieces } = await started.output()
  const text = Buffer.concat(pieces.map(({ bytes }) => bytes)).toString()
  return { code: outcome.type === 'ended' ? outcome.exit.code : null, text }
}

describe('a command in the sandbox', () => {
  test('changes files of the working folder, and has the exit code that it has outside', async () => {
    expect(await inBox('echo new > made && cat made && exit 7')).toEqual({ code: 7, text: 'new\n' })
    expect(readFileSync(join(work, 'made'), 'utf8')).toBe('new\n')
  })

  test('changes nothing else', async () => {
    const { code } = await inBox(
      `echo after > ${folder}/outside/file || touch ${home}/x || touch /etc/tapetree-test || touch /usr/x`,
    )
    expect(code).not.toBe(0)
    expect(readFileSync(join(folder, 'outside/file'), 'utf8')).toBe('before')
  })

  test('shares /tmp with the other commands of the session, and not with the machine', async () => {
    const { text } = await inBox('echo shared > /tmp/note; ls /tmp; echo $TMPDIR')
    expect(text).toContain('note')
    expect(text.split('\n')).not.toContain('keep')
    expect((await inBox('cat /tmp/note')).text).toBe('shared\n')
    expect(existsSync('/tmp/note')).toBe(false)
  })

  test('reads no secret: of the home folder, of the system, of tapetree, or of the working folder', async () => {
    const { text } = await inBox(
      `cat ${home}/.ssh/* ${folder}/data/* .env /etc/shadow ${folder}/keep/* 2>&1; ls -a ${home}/.ssh ${folder}/data; true`,
    )
    expect(text).not.toContain('canary')
    expect(text).not.toContain('root:')
  })

  test('neither reads nor changes a control file that may hold a secret', async () => {
    for (const name of ['.npmrc', '.envrc', '.yarnrc.yml', '.pypirc']) {
      mkdirSync(join(work, 'packages'), { recursive: true })
      for (const path of [join(work, name), join(work, 'packages', name)]) {
        writeFileSync(path, 'canary: token')
        const { text } = await inBox(
          `cat ${path}; cp ${path} copied; cat copied; echo x >> ${path}; mv -f ${path} moved`,
        )
        expect(text, path).not.toContain('canary')
        expect(readFileSync(path, 'utf8')).toBe('canary: token')
      }
    }
  })

  test('does not read a secret by a link of the working folder that leads to another name', async () => {
    writeFileSync(join(folder, 'outside/production'), 'canary: production')
    symlinkSync(join(folder, 'outside/production'), join(work, '.env.production'))
    writeFileSync(join(work, 'settings'), 'canary: settings')
    symlinkSync('settings', join(work, '.env.local'))
    const { text } = await inBox(`cat .env.production .env.local settings ${folder}/outside/production`)
    expect(text).not.toContain('canary')
  })

  test('reads the secrets of the working folder if the user has allowed that', async () => {
    const open = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), showsOwnSecrets: true })
    expect((await inBox('cat .env', { box: open })).text).toBe('canary: env')
  })

  test('commits, but changes neither hooks nor settings of a repository', async () => {
    writeFileSync(join(work, 'a'), 'a')
    const identity = '-c user.name=a -c user.email=a@example.com'
    expect(await inBox(`git add a && git ${identity} commit -qm first && git log --format=%s`)).toEqual({
      code: 0,
      text: 'first\n',
    })
    for (const attack of [
      'echo "touch /tmp/hooked" > .git/hooks/post-commit',
      'git config core.fsmonitor ./x',
      'mv .git .other && git init -q',
      'mkdir -p .git/hooks && ln -sf /tmp/x .git/hooks/pre-commit',
    ]) {
      const { code } = await inBox(attack)
      expect(code, attack).not.toBe(0)
    }
  })

  test('cannot change hooks of a repository within the working folder', async () => {
    execFileSync('git', ['init', '-q', join(work, 'deep/nested')])
    expect((await inBox('echo x > deep/nested/.git/hooks/post-checkout')).code).not.toBe(0)
    expect((await inBox('mv deep/nested/.git deep/nested/moved')).code).not.toBe(0)
  })

  test('cannot change settings of editors and agents that exist', async () => {
    mkdirSync(join(work, '.vscode'))
    writeFileSync(join(work, '.vscode/tasks.json'), '{}')
    expect((await inBox('echo x > .vscode/tasks.json')).code).not.toBe(0)
    expect((await inBox('mv .vscode y')).code).not.toBe(0)
  })

  test('has no rights over the kernel, even for root', async () => {
    const { text } = await inBox(
      '(echo x > /proc/sys/kernel/core_pattern) 2>&1; unshare -U true 2>&1; mount -t tmpfs t /mnt 2>&1; grep CapEff /proc/self/status',
    )
    expect(text).toMatch(/core_pattern: (?:Read-only|Permission)/)
    expect(text).toMatch(/unshare failed/)
    expect(text).toMatch(/CapEff:\t0{16}/)
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).not.toBe('x\n')
  })

  test('sees no process of the machine, and none of its own boxes from outside', async () => {
    const { text } = await inBox(
      `ls /proc | grep -c '^[0-9]'; for p in /proc/[0-9]*; do cat $p/root${work}/.env 2>/dev/null; done; true`,
    )
    expect(Number.parseInt(text, 10)).toBeLessThan(12)
    expect(text).not.toContain('canary')
  })

  test('reaches no server of the machine: neither by address nor by socket', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const path = join(home, 'agent.sock')
    // A program that is killed leaves the file of its socket, so that boxes of other tests can still mount over it.
    const listening = `require("net").createServer().listen(${JSON.stringify(path)}, () => console.log("up"))`
    const local = spawn(process.execPath, ['-e', listening], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(local.stdout, 'data')
    const { port } = server.address() as { port: number }
    const script = `const net=require("net");for(const to of [{port:${port},host:"127.0.0.1"},{path:"${path}"}])net.connect(to).on("connect",()=>console.log("reached",to)).on("error",()=>{})`
    writeFileSync(join(work, 'reach.cjs'), script)
    expect((await inBox(`${process.execPath} reach.cjs`)).text).toBe('')
    server.close()
    local.kill('SIGKILL')
  })

  test('cannot write at all if it is judged to only read', async () => {
    expect((await inBox('touch other || echo read-only', { isReadOnly: true })).text).toContain('read-only')
  })

  test('is ended with all of its processes', async () => {
    const { text } = await inBox('(setsid sleep 300 &) ; echo left')
    expect(text).toBe('left\n')
    expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain('sleep 300')
  })
})

describe('a machine without a sandbox', () => {
  test('says what is missing and how to get it', async () => {
    expect(await probeSandbox({ path: '/nowhere' })).toMatchObject({
      type: 'none',
      reason: 'bubblewrap is not installed.',
    })
    const broken = join(folder, 'bin')
    mkdirSync(broken)
    writeFileSync(join(broken, 'bwrap'), '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n')
    chmodSync(join(broken, 'bwrap'), 0o755)
    const support = await probeSandbox({ path: broken })
    expect(support).toMatchObject({ type: 'none', reason: expect.stringContaining('setting up uid map') as string })
  })

  test('runs no command instead of running it outside', async () => {
    const support = await probeSandbox({ path: '/nowhere' })
    const none = await Sandbox.open({ folders: [work], home, keep: join(folder, 'keep'), support })
    await expect(none.box(work)).rejects.toThrow('There is no sandbox: bubblewrap is not installed.')
  })
})
