"""Jobs as people meet them: submitting, finding, presenting and changing them."""
