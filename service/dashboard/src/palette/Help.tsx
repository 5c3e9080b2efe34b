import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useModal } from "../ui/useModal";
import { KEYS, LOCAL_KEYS } from "./keys";

/** The keys, in a dialog. */
export default function Help({ onClose }: { onClose: () => void }) {
  const { props } = useModal(onClose);
  return (
    <dialog {...props} className="dialog" aria-label={t`Keys`}>
      <form method="dialog">
        <h2><Trans>Keys</Trans></h2>
        <dl className="keys">
          {[...KEYS, ...LOCAL_KEYS].map(({ keys, does }) => (
            <div key={does}>
              <dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <div className="dialog-actions"><button type="submit" className="button"><Trans>Close</Trans></button></div>
      </form>
    </dialog>
  );
}
