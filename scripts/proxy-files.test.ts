import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('the guide shows the proxy configurations of deploy as they are', () => {
  const guide = readFileSync('docs/guides/behind-a-proxy.md', 'utf8')
  for (const file of ['nginx.conf', 'Caddyfile'])
    expect(guide).toContain(`\n${readFileSync(`deploy/${file}`, 'utf8')}\`\`\`\n`)
})
