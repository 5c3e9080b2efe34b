import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import * as Popover from "@radix-ui/react-popover";

interface Props {
  names: readonly string[];
  chosen: readonly string[];
  onChange: (names: string[]) => void;
}

/** The metrics that have a chart, ticked in a list. */
export function MetricChoice({ names, chosen, onChange }: Props) {
  const shown = names.filter((name) => chosen.includes(name));
  return (
    <Popover.Root>
      <Popover.Trigger className="button small">
        <Trans>{{ shown: shown.length }} of {{ all: names.length }} metrics</Trans>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover metric-choice" align="end" sideOffset={4} aria-label={t`Metrics`}>
          {names.map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={chosen.includes(name)}
                onChange={({ target }) => (
                  onChange(names.filter((one) => (one === name ? target.checked : chosen.includes(one))))
                )}
              />
              {name}
            </label>
          ))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
