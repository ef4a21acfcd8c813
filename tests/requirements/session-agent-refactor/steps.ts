import type { Requirement } from '../requirement.ts'

/** Sections 5 to 8: one step of a run in detail, and decisions. */
export const steps = [
  {
    id: 'session-agent-refactor/5.1 handler',
    says: 'A handler updates and stores the message for each event.',
    lines: {
      '`StepHandler` - Callback Router': ['5ba5fe14', '7be56664', '53824566', '25ab017f'],
      '5.1 `StepHandler` Implementation': ['a37987c1', '5ba5fe14', '7be56664', '53824566', '56fb0437', '1c4d63a8'],
    },
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-start',
    says: 'The start of reasoning adds its text to the message.',
    lines: { '5.1 `StepHandler` Implementation': ['ae112108', '4ebe1b23'] },
  },
  {
    id: 'session-agent-refactor/5.1 update',
    says: 'Each change of the message is stored.',
    lines: { '5.1 `StepHandler` Implementation': ['9eb12b37'] },
    settled: 'The draft file has it within 250 ms; the entry follows when it is finished.',
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-delta',
    says: 'Each reasoning delta extends the message.',
    lines: { '5.1 `StepHandler` Implementation': ['cebc1688', '9bde7b0a', '9eb12b37'] },
  },
  {
    id: 'session-agent-refactor/5.1 reasoning-end',
    says: 'The end of reasoning is stored.',
    lines: { '5.1 `StepHandler` Implementation': ['0c89bca6', 'b29f7783', '9eb12b37'] },
  },
  {
    id: 'session-agent-refactor/5.1 signatures',
    says: 'Reasoning signatures are kept.',
    lines: { '5.1 `StepHandler` Implementation': ['8b62879c', 'ab15330b'] },
  },
  {
    id: 'session-agent-refactor/5.1 anthropic-signature',
    says: 'Anthropic signatures are kept.',
    lines: { '5.1 `StepHandler` Implementation': ['3a6fc530', '8fe88016', '50fa3387'] },
  },
  {
    id: 'session-agent-refactor/5.1 google-signature',
    says: 'Google thought signatures are kept with their tool call.',
    lines: { '5.1 `StepHandler` Implementation': ['2e5b900a', '859b1722', '5da387eb'] },
  },
  {
    id: 'session-agent-refactor/5.1 openai-reasoning',
    says: 'OpenAI reasoning data is kept.',
    lines: { '5.1 `StepHandler` Implementation': ['28bd3625', 'fe10c7a2', '19e3a1f2'] },
  },
  {
    id: 'session-agent-refactor/5.1 leading-newline',
    says: 'A leading newline of the first text is removed.',
    lines: { '5.1 `StepHandler` Implementation': ['3c658232', '4d960b3b', 'd2994129', 'ea778ccc'] },
  },
  {
    id: 'session-agent-refactor/5.1 text-appended',
    says: 'Each text delta extends the message.',
    lines: { '5.1 `StepHandler` Implementation': ['1805b3a4', '9eb12b37'] },
  },
  {
    id: 'session-agent-refactor/5.1 tool-input-start',
    says: 'The start of tool input adds an unfinished call.',
    lines: {
      '5.1 `StepHandler` Implementation': [
        '306462ef',
        'bde62565',
        '47909dbf',
        '6c0bb1b8',
        '177039f2',
        '2b33149b',
        '72c0e8e2',
        '9eb12b37',
      ],
    },
    settled: 'A call with incomplete input has `partialInput`.',
  },
  {
    id: 'session-agent-refactor/5.1 tool-call',
    says: 'A complete tool call is stored with its input.',
    lines: {
      '5.1 `StepHandler` Implementation': [
        'bb449de3',
        'bde62565',
        '6d05fbab',
        'bb42a0e1',
        '8a6310d3',
        '177039f2',
        'd4e616a8',
        '72c0e8e2',
        '9eb12b37',
      ],
    },
  },
  {
    id: 'session-agent-refactor/5.1 tool-result',
    says: 'Each tool result is stored as a tool message.',
    lines: {
      '5.1 `StepHandler` Implementation': ['27ff0383', 'e764ec50', 'd90a2a33', '6f025ed0', '96bd5dda', '41ee1305'],
    },
  },
  {
    id: 'session-agent-refactor/5.1 prepare-step',
    says: 'Each step prepares messages and context.',
    lines: {
      '5.1 `StepHandler` Implementation': ['44936333', '9f56edc5', 'bdbe5bf8', '4b00b4bd', '6d17f3c8', '099f308a'],
    },
  },
  {
    id: 'session-agent-refactor/5.1 provider-options',
    says: 'Old provider options are removed from messages.',
    lines: { '5.1 `StepHandler` Implementation': ['a7d1c445', '100a9b86', '7ca81049'] },
    settled: 'Provider data returns only to the same provider and model.',
  },
  {
    id: 'session-agent-refactor/5.1 queued-messages',
    says: 'A step includes messages queued in the meantime.',
    lines: {
      '5.1 `StepHandler` Implementation': ['ed525f0d', '54dff0f9', 'b079d956', 'e679f0b5', '74f1e257', '38be0dcc'],
    },
  },
  {
    id: 'session-agent-refactor/5.1 transformations',
    says: 'Messages are transformed for the provider.',
    lines: { '5.1 `StepHandler` Implementation': ['a0ee6de3', 'bb049d37'] },
    settled: 'Each adapter converts them to its own format.',
  },
  {
    id: 'session-agent-refactor/5.1 dedupe',
    says: 'Duplicate tool outputs are sent once.',
    lines: { '5.1 `StepHandler` Implementation': ['c1224dd5'] },
  },
  {
    id: 'session-agent-refactor/5.1 cache-markers',
    says: 'A step applies cache markers.',
    lines: { '5.1 `StepHandler` Implementation': ['ba95a8ee', '9e1e0122'] },
  },
  {
    id: 'session-agent-refactor/5.1 create-assistant',
    says: 'A step creates the assistant message.',
    lines: {
      '5.1 `StepHandler` Implementation': [
        'fac1c188',
        '2ee56b66',
        '04bbeda4',
        'f4f5819d',
        'f351cdce',
        'ab5771d4',
        '1d4bd00c',
        'c9b003d5',
      ],
    },
    settled: 'The entry is appended when the response is finished.',
  },
  {
    id: 'session-agent-refactor/5.1 context-message-id',
    says: 'A tool knows the message it belongs to.',
    lines: { '5.1 `StepHandler` Implementation': ['f58218f1', '45dd6d79'] },
    settled: 'A tool receives its run and its call.',
  },
  {
    id: 'session-agent-refactor/5.1 context-images',
    says: 'Images reach only models that accept them.',
    lines: { '5.1 `StepHandler` Implementation': ['0533e6b1'] },
    settled: 'Tools learn it with the name of the model; the adapter omits images for other models.',
  },
  {
    id: 'session-agent-refactor/5.1 context-model-name',
    says: 'A tool knows the name of the model.',
    lines: { '5.1 `StepHandler` Implementation': ['35d1744d'] },
    settled: 'The tool context has `model`: provider, id, and whether it accepts images.',
  },
  {
    id: 'session-agent-refactor/5.1 assistant-role',
    says: 'The response has the role `assistant`.',
    lines: { '5.1 `StepHandler` Implementation': ['15477630', '58ea172f'] },
  },
  {
    id: 'session-agent-refactor/5.1 assistant-model',
    says: 'The response names its model and provider.',
    lines: { '5.1 `StepHandler` Implementation': ['225ad170', 'ecc2ab42'] },
  },
  {
    id: 'session-agent-refactor/5.1 system-messages',
    says: 'System messages come first.',
    lines: {
      '5.1 `StepHandler` Implementation': [
        '4939b919',
        'e2954f50',
        'b252a3a3',
        'c666edb7',
        '3b2a805b',
        'e7d8cae1',
        'cb68288e',
        '1df8f4e1',
        '38be0dcc',
      ],
    },
    settled: 'The system prompt is one `system` entry, sent first; template text is in the user message.',
  },
  {
    id: 'session-agent-refactor/5.2 strips-newline',
    says: 'A test covers the removed leading newline.',
    lines: {
      '5.2 Testing Strategy': [
        'b4aa5af6',
        'e1a31e26',
        '73edb1fd',
        '182d467a',
        '070b7d35',
        '1ee8efea',
        'ebed5828',
        'd975fe62',
        '4579b1a6',
      ],
    },
  },
  {
    id: 'session-agent-refactor/5.2 keeps-newline',
    says: 'A test covers that later newlines stay.',
    lines: {
      '5.2 Testing Strategy': ['96b18023', 'b863c2b6', 'e62afcce', '1ee8efea', '013e4f66', 'd975fe62', 'e07f6cdb'],
    },
  },
  {
    id: 'session-agent-refactor/5.2 anthropic-signature',
    says: 'A test covers Anthropic signatures.',
    lines: { '5.2 Testing Strategy': ['1227138f', '71f473c1', '35caf6fd'] },
  },
  {
    id: 'session-agent-refactor/5.2 finishes-thinking',
    says: 'A test covers the end of reasoning.',
    lines: { '5.2 Testing Strategy': ['e06458b6', '0d164434'] },
  },
  {
    id: 'session-agent-refactor/5.2 template-first',
    says: 'A test covers the order of system messages.',
    lines: { '5.2 Testing Strategy': ['b5429cc4', '5121fa57', 'ab3162d7'] },
    settled: 'The system prompt is first and the only system message.',
  },
  {
    id: 'session-agent-refactor/5.2 cache-markers',
    says: 'A test covers the position of cache markers.',
    lines: { '5.2 Testing Strategy': ['0fa0b8c4', 'c21467b2'] },
  },
  {
    id: 'session-agent-refactor/5.2 creates-assistant',
    says: 'A test covers the creation of the response.',
    lines: { '5.2 Testing Strategy': ['b243db91', 'f5e6f87a'] },
  },
  {
    id: 'session-agent-refactor/6 no-sharing',
    says: 'Runs share no mutable state.',
    lines: { '6. Risk Assessment': ['fbc4f346'] },
  },
  {
    id: 'session-agent-refactor/7 short-functions',
    says: 'Functions in new files have at most 100 lines.',
    lines: { '7. Success Criteria': ['81bac9cc'] },
  },
  {
    id: 'session-agent-refactor/7 short-run',
    says: 'The run function has fewer than 80 lines.',
    lines: { '7. Success Criteria': ['53abe766'] },
  },
  {
    id: 'session-agent-refactor/8 central-errors',
    says: 'Error handling is central.',
    lines: { '8. Open Questions': ['2802d60e', '8d3e3394', '4eebb06c', '712f857c'] },
    settled: '`recoverFrom` is one pure function.',
  },
  {
    id: 'session-agent-refactor/8 queue-place',
    says: 'The queue needs no manager of its own.',
    lines: { '8. Open Questions': ['dcf5506d', 'e6ff837a'] },
    settled: 'It is the inbox of the session.',
  },
] as const satisfies readonly Requirement[]
