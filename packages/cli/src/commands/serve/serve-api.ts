import type { ServerOptions } from '@tapetree/server'
import { surroundingsOf } from '../../host/surroundings.ts'
import type { Io } from '../../command-line/io.ts'
import type { ServeOptions } from './options.ts'

/** What the routes of the server know beside sessions: read anew each time, so that a key that was added is seen. */
export function serveApi(io: Io, { roots }: Pick<ServeOptions, 'roots'>): NonNullable<ServerOptions['api']> {
  const around = (cwd: string | undefined): ReturnType<typeof surroundingsOf> =>
    surroundingsOf(io, { cwd: cwd ?? roots[0] ?? io.cwd })
  return {
    roots: () => roots,
    models: async () => {
      const { registry } = await around(undefined)
      await registry.discover()
      return registry.list()
    },
    openModel: async (_tenant, { provider, modelId }) => {
      const { registry } = await around(undefined)
      return (await registry.open({ provider, id: modelId })).model
    },
    settings: async (_tenant, cwd) => (await around(cwd)).settings,
  }
}
