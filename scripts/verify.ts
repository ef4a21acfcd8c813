// Runs every check in turn, also after one has failed, and says how long each took.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const checks = ['format:check', 'lint', 'types', 'arrows', 'unused', 'lockcheck', 'leaks', 'test']

function verify(): void {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const results = checks.map((name) => runCheck(name, scripts[name] ?? `echo no script ${name} && exit 1`))
  for (const { name, ok, ms } of results) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(14)} ${(ms / 1000).toFixed(1)} s`)
  }
  process.exitCode = results.every((result) => result.ok) ? 0 : 1
}

function runCheck(name: string, command: string): { name: string; ok: boolean; ms: number } {
  console.log(`> ${name}: ${command}`)
  const start = performance.now()
  const { status } = spawnSync(command, { shell: true, stdio: 'inherit' })
  return { name, ok: status === 0, ms: performance.now() - start }
}

verify()
