import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Imports a module in a separate process and returns the packages that this loads. */
async function packagesLoadedBy(url: URL): Promise<Set<string>> {
  const program = `
    import { registerHooks } from 'node:module'
    const packages = new Set()
    registerHooks({
      load(url, context, next) {
        const [, name] = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
        if (name) packages.add(name)
        return next(url, context)
      },
    })
    await import(${JSON.stringify(url.href)})
    console.log(JSON.stringify([...packages]))
  `
  const flags = ['-C', '@tapetree/source', '--input-type=module', '-e', program]
  const { stdout } = await promisify(execFile)(process.execPath, flags)
  return new Set(JSON.parse(stdout) as string[])
}

test('importing the package loads no provider, no MCP client, no YAML parser, no table of prices and no keyring', async () => {
  const loaded = await packagesLoadedBy(new URL('index.ts', import.meta.url))
  expect(loaded).toContain('zod')
  const heavy = [...loaded].filter((name) =>
    /^(?:@ai-sdk\/|@modelcontextprotocol\/|@napi-rs\/|yaml$)|prices/.test(name),
  )
  expect(heavy).toEqual([])
})
