#!/usr/bin/env node
import { version } from './command-line/version.ts'

// Answers the most frequent question of scripts before loading anything else.
const args = process.argv.slice(2)
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) sayVersion()
else if (isOldNode(process.versions.node)) sayOldNode()
else await (await import('./start.ts')).start(args)

function sayVersion(): void {
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return
    process.stderr.write(`tapetree: cannot write the output. ${message}\n`)
    process.exitCode = 3
  })
  process.stdout.write(`${version}\n`)
}

function isOldNode(running: string): boolean {
  const [major = 0, minor = 0] = running.split('.').map(Number)
  return major < 24 || (major === 24 && minor < 15)
}

function sayOldNode(): void {
  process.stderr.write(`tapetree needs Node 24.15 or newer; this is ${process.versions.node}.\n`)
  process.exitCode = 3
}
