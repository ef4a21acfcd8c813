import type { ModelList, SessionSummary } from '@tapetree/client'
import { useCallback, useState, type ReactNode } from 'react'
import { Screen } from '../screen.tsx'
import { sessionLink } from '../route.ts'
import { rest, sentenceOf } from '../server.ts'
import { useLoaded } from '../use-loaded.ts'
import { sessionCreator } from './create-session.ts'

type Model = ModelList['models'][number]

/** A new session: folder, agent, model and first message. Everything has a default. */
export function NewSession({ sessions }: { sessions: readonly SessionSummary[] }): ReactNode {
  const [cwd, setCwd] = useState('')
  const [modelName, setModelName] = useState('')
  const [agent, setAgent] = useState('')
  const [prompt, setPrompt] = useState('')
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const [createSession] = useState(() => sessionCreator(rest))
  const [isBrowsing, setBrowsing] = useState(false)
  const models = useLoaded(loadModels).value ?? []
  const agents = useLoaded(loadAgents).value ?? []
  const create = async (): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    const model = models.find((each) => nameOf(each) === modelName)
    try {
      const id = await createSession({
        ...(cwd !== '' && { cwd }),
        ...(model && { model: { provider: model.provider, modelId: model.modelId } }),
        ...(agent !== '' && { agent }),
        ...(prompt.trim() !== '' && { prompt }),
      })
      location.hash = sessionLink(id)
    } catch (error) {
      setProblem(sentenceOf(error))
      setBusy(false)
    }
  }
  return (
    <Screen title="New session" back={{ href: '#/', name: 'All sessions' }}>
      <form
        className="new-session"
        onSubmit={(event) => {
          event.preventDefault()
          void create()
        }}
      >
        {problem !== undefined && (
          <p className="notice failed" role="alert">
            {problem}
          </p>
        )}
        <label className="field">
          First message (optional)
          <textarea
            rows={4}
            autoFocus
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
            }}
          />
        </label>
        <div className="with-button">
          <label className="field">
            Folder
            <input
              list="folders"
              value={cwd}
              placeholder="the server's first folder"
              onChange={(event) => setCwd(event.target.value)}
            />
          </label>
          <button type="button" className="quiet" aria-expanded={isBrowsing} onClick={() => setBrowsing(!isBrowsing)}>
            Browse
          </button>
        </div>
        <datalist id="folders">
          {foldersOf(sessions).map((folder) => (
            <option key={folder} value={folder} />
          ))}
        </datalist>
        {isBrowsing && <FolderBrowser onChoose={setCwd} />}
        <div className="choices">
          <label className="field">
            Model
            <select value={modelName} onChange={(event) => setModelName(event.target.value)}>
              <option value="">Default</option>
              {models.map((model) => (
                <option key={nameOf(model)} value={nameOf(model)} disabled={model.key === 'missing'}>
                  {nameOf(model)}
                  {model.key === 'missing' && ' (no key)'}
                </option>
              ))}
            </select>
          </label>
          {agents.length > 1 && (
            <label className="field">
              Agent
              <select value={agent} onChange={(event) => setAgent(event.target.value)}>
                {agents.map(({ id, name, description }, index) => (
                  <option key={id} value={index === 0 ? '' : id} title={description}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          )}
        </div>
        <div className="buttons">
          <button disabled={isBusy}>Create</button>
          <button type="button" className="quiet" onClick={() => history.back()}>
            Cancel
          </button>
        </div>
      </form>
    </Screen>
  )
}

/** The folders that the server allows, one level at a time. */
function FolderBrowser({ onChoose }: { onChoose: (path: string) => void }): ReactNode {
  const [path, setPath] = useState<string>()
  const load = useCallback((signal: AbortSignal) => rest.folders(path, signal), [path])
  const { value, problem } = useLoaded(load)
  const go = (to: string | undefined): void => {
    setPath(to)
    if (to !== undefined) onChoose(to)
  }
  return (
    <div className="folder-browser" role="group" aria-label="Folders on the server">
      {problem !== undefined && <p className="notice failed">{problem}</p>}
      {value && path !== undefined && (
        <button type="button" className="fold" onClick={() => go(value.parent ?? undefined)}>
          ↑ {value.parent === null ? 'All folders' : 'Parent folder'}
        </button>
      )}
      {value?.folders.map((folder) => (
        <button type="button" className="fold" key={folder.path} onClick={() => go(folder.path)}>
          {folder.name}/
        </button>
      ))}
      {value?.folders.length === 0 && <p className="faint">No folders in here.</p>}
      {value?.hasMore && <p className="faint">There are more. Type the path instead.</p>}
    </div>
  )
}

async function loadModels(signal: AbortSignal): Promise<Model[]> {
  return (await rest.models(signal)).models
}

async function loadAgents(
  signal: AbortSignal,
): Promise<{ id: string; name: string; description?: string | undefined }[]> {
  return (await rest.agents(signal)).agents
}

function nameOf({ provider, modelId }: Model): string {
  return `${provider}/${modelId}`
}

function foldersOf(sessions: readonly SessionSummary[]): string[] {
  return [...new Set(sessions.flatMap(({ cwd }) => (cwd === undefined ? [] : [cwd])))].slice(0, 20)
}
