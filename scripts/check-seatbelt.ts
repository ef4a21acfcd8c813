// Tries the Seatbelt profile on a Mac: `npx node -C @tapetree/source scripts/check-seatbelt.ts`. Nobody has run it yet; please report what it
// prints. It makes a folder in your home folder, runs commands in the sandbox there, and removes it.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { seatbeltProfile } from '@tapetree/agent/sandbox'

if (process.platform !== 'darwin') {
  console.error('Seatbelt is a part of macOS. Run this on a Mac.')
  process.exit(2)
}

const folder = realpathSync(mkdtempSync(join(homedir(), 'tapetree-seatbelt-')))
const [work, secret, scratch] = ['work', 'secret', 'tmp'].map((name) => join(folder, name)) as [string, string, string]
for (const path of [work, secret, scratch]) mkdirSync(path)
writeFileSync(join(secret, 'key'), 'canary')
writeFileSync(join(work, '.env'), 'canary')
execFileSync('git', ['init', '-q', work])
const server = createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as { port: number }
const profile = join(folder, 'profile.sb')
const git = join(work, '.git')
writeFileSync(
  profile,
  seatbeltProfile({
    writable: [work],
    scratch,
    caches: [],
    hidden: [{ path: secret, isFolder: true }],
    pinned: [git],
    readOnly: ['hooks', 'config', 'info'].map((name) => join(git, name)),
    hiddenInside: [{ path: join(work, '.env'), isFolder: false }],
  }),
)

/** What must work in the sandbox, and what must fail. */
const attempts: [works: boolean, what: string, command: string][] = [
  [true, 'start a program', 'true'],
  [true, 'write in the working folder', 'echo a > file && cat file'],
  [true, 'write a temporary file', 'echo a > "$TMPDIR/file"'],
  [true, 'commit', 'git add file && git -c user.name=a -c user.email=a@b commit -qm a'],
  [true, 'run Node', `"${process.execPath}" -e 0`],
  [true, 'list processes of its own', 'sleep 1 & kill $!'],
  [false, 'write outside', `echo a > "${folder}/outside"`],
  [false, 'write in the home folder', `echo a > "${homedir()}/tapetree-outside"`],
  [false, 'read a secret', `cat "${secret}/key"`],
  [false, 'read .env', 'cat .env'],
  [false, 'plant a hook', 'echo a > .git/hooks/post-commit'],
  [false, 'change the settings of git', 'git config core.fsmonitor x'],
  [false, 'move .git', 'mv .git other'],
  [false, 'reach a server of this machine', `bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port}'`],
  [false, 'start a program by Apple events', `osascript -e 'tell application "Finder" to get name'`],
  [false, 'open an application', 'open -g -a Calculator'],
]
let wrong = 0
for (const [works, what, command] of attempts) {
  const { status, stderr } = spawnSync('/usr/bin/sandbox-exec', ['-f', profile, '/bin/bash', '-c', command], {
    cwd: work,
    env: { PATH: process.env['PATH'], HOME: homedir(), TMPDIR: scratch },
    encoding: 'utf8',
    timeout: 20_000,
  })
  const isRight = (status === 0) === works
  if (!isRight) wrong += 1
  console.log(
    `${isRight ? 'right' : 'WRONG'}  ${works ? 'can' : 'cannot'} ${what}${isRight ? '' : `: ${stderr.trim()}`}`,
  )
}
server.close()
rmSync(folder, { recursive: true })
console.log(`${wrong} of ${attempts.length} are wrong`)
process.exitCode = wrong === 0 ? 0 : 1
