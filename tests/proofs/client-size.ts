import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'

export const name = 'client-size'
export const claim = 'The client bundle is at most 25 KB.'

const targetKb = 25

/** How much a page loads for the client, minified and gzipped, and that a browser can run it. */
export async function run({ say }: FigureContext): Promise<FigureResult> {
  const alone = await bundle(['zod', '@tapetree/session'])
  const withSession = await bundle(['zod'])
  const whole = await bundle([])
  say(`client alone: ${alone.kb.toFixed(1)} KB, at most ${targetKb}`)
  say(
    `with what it uses of @tapetree/session: ${withSession.kb.toFixed(1)} KB; with zod as well: ${whole.kb.toFixed(1)} KB`,
  )
  const nodeImports = [...new Set([...alone.nodeImports, ...withSession.nodeImports, ...whole.nodeImports])]
  for (const specifier of nodeImports) say(`a browser cannot load ${specifier}`)
  return {
    ok: alone.kb <= targetKb && nodeImports.length === 0 && whole.outside.length === 0,
    figures: {
      clientKb: rounded(alone.kb),
      withSessionKb: rounded(withSession.kb),
      withZodKb: rounded(whole.kb),
      nodeImports: nodeImports.length,
    },
  }
}

interface Bundle {
  kb: number
  nodeImports: string[]
  /** What the bundle still imports. */
  outside: string[]
}

/** A page that uses all that the package exports. */
async function bundle(external: string[]): Promise<Bundle> {
  const nodeImports = new Set<string>()
  const built = await rolldown({
    input: 'packages/client/src/index.ts',
    platform: 'browser',
    external,
    resolve: { conditionNames: ['browser', '@tapetree/source', 'import', 'default'] },
    logLevel: 'silent',
    plugins: [
      {
        name: 'note-node-imports',
        resolveId: (specifier) => {
          if (specifier.startsWith('node:')) nodeImports.add(specifier)
          return null
        },
      },
    ],
  })
  const { output } = await built.generate({ format: 'esm', minify: true })
  await built.close()
  const chunks = output.filter((each) => each.type === 'chunk')
  const bytes = chunks.reduce((sum, { code }) => sum + gzipSync(code, { level: 9 }).length, 0)
  return {
    kb: bytes / 1000,
    nodeImports: [...nodeImports],
    outside: [...new Set(chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]))],
  }
}

function rounded(kb: number): number {
  return Math.round(kb * 10) / 10
}
